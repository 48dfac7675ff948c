// SPDX-License-Identifier: Apache-2.0
// node draw.mjs ANSWERS OUT: a picture (PNG) of each dashboard in headless Chromium.
// ANSWERS is a folder with one JSON file a dashboard, as tests/system/test_pictures.py writes them:
// { board, from, to, answers: { PANEL_ID: { REF: [{ labels, values: [[time, value]] }] } } }
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { buildSync } from 'esbuild';

const [answers, out] = process.argv.slice(2).map((path) => resolve(path));
const WIDTH = 1600;
const here = import.meta.dirname;
const work = mkdtempSync(join(tmpdir(), 'pmdpulse-pictures-'));

buildSync({
  entryPoints: [join(here, 'page.jsx')],
  bundle: true,
  outfile: join(work, 'page.js'),
  format: 'iife',
  platform: 'browser',
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  logLevel: 'error',
});
mkdirSync(out, { recursive: true });
for (const name of readdirSync(answers).filter((one) => one.endsWith('.json'))) {
  const data = JSON.parse(readFileSync(join(answers, name), 'utf8'));
  const rows = Math.max(...data.board.panels.map((p) => p.gridPos.y + p.gridPos.h));
  const height = rows * 38 + 70;
  const html = join(work, 'page.html');
  writeFileSync(
    html,
    `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><body style="margin:0"><div id="page"></div>` +
      `<script>window.PICTURE=${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>` +
      `<script src="page.js"></script>`
  );
  const png = join(out, basename(name, '.json') + '.png');
  execFileSync('chromium', [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--allow-file-access-from-files',
    `--user-data-dir=${join(work, 'chromium')}`, `--window-size=${WIDTH},${height}`,
    '--virtual-time-budget=8000', `--screenshot=${png}`, `file://${html}`,
  ], { stdio: ['ignore', 'ignore', process.env.VERBOSE ? 'inherit' : 'ignore'] });
  console.log(png);
}
rmSync(work, { recursive: true, force: true });
