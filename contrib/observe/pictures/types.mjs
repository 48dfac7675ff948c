// SPDX-License-Identifier: Apache-2.0
// node types.mjs BOARDS: do the dashboards in this folder have the shape that Grafana's own types ask for?
// The JSON goes into a TypeScript literal, since an import of JSON would lose the words' types; and an
// enum of words takes no word as it is, so enums are looked at as the words that they stand for.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const here = import.meta.dirname;
const boards = resolve(process.argv[2]);
// Beside node_modules, where tsc looks for @grafana/schema.
const work = mkdtempSync(join(here, 'types-'));
let failed = false;

try {
  const names = readdirSync(boards).filter((one) => one.endsWith('.json'));
  for (const name of names) {
    const text = readFileSync(join(boards, name), 'utf8');
    writeFileSync(join(work, name + '.ts'),
      `import type { AnnotationQuery, Dashboard } from '@grafana/schema';
type Plain<T> = T extends string ? \`\${T}\` : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
// What the Prometheus data source keeps in an annotation, which the schema leaves to it.
type Asked = { expr?: string; step?: string; titleFormat?: string; textFormat?: string; tagKeys?: string };
type Board = Omit<Dashboard, 'annotations'> & { annotations: { list: (AnnotationQuery & Asked)[] } };
export const board: Plain<Board> = ${text};
`);
  }
  execFileSync('node', [join(here, 'node_modules', 'typescript', 'bin', 'tsc'), '--noEmit', '--strict', '--skipLibCheck',
    '--module', 'nodenext', '--moduleResolution', 'nodenext', '--target', 'es2022',
    ...names.map((name) => join(work, name + '.ts'))], { stdio: 'inherit' });
  console.log(`${names.length} dashboards have the types of @grafana/schema`);
} catch {
  failed = true;
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
