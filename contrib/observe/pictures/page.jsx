// SPDX-License-Identifier: Apache-2.0
// A dashboard as a page. Frames, numbers, graphs and value formats are Grafana's own; state timelines,
// heat maps and tables, whose panels Grafana does not publish as a library, are drawn here.
import { createTheme, FieldType, getDisplayProcessor, dateTime, ThemeContext } from '@grafana/data';
import { BigValue, GlobalStyles, PanelChrome, TimeSeries } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

const { board, chosen, from, to, answers, notes } = window.PICTURE;
const theme = createTheme({ colors: { mode: 'dark' } });
const timeZone = 'utc';
const WIDTH = 1600, CELL = 30, GAP = 8, TOP = 54;
const timeRange = { from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: dateTime(from * 1000), to: dateTime(to * 1000) } };
const color = (name) => theme.visualization.getColorByName(name);

function configOf(panel, heading) {
  const config = structuredClone(panel.fieldConfig.defaults);
  for (const override of panel.fieldConfig.overrides) {
    if (override.matcher.options === heading) {
      for (const { id, value } of override.properties) {
        if (!id.startsWith('custom.')) config[id] = value;
        else config.custom = { ...config.custom, [id.slice(7)]: value };
      }
    }
  }
  for (const step of config.thresholds?.steps ?? []) step.value ??= -Infinity;
  return config;
}

function legend(target, labels) {
  if (target.legendFormat === '__auto') return Object.entries(labels).map(([k, v]) => `${k}="${v}"`).join(', ') || 'value';
  return target.legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '').trim();
}

function numberField(panel, name, values, index, heading) {
  const field = { name, type: FieldType.number, config: { ...configOf(panel, heading), displayName: name }, values, state: { seriesIndex: index, displayName: name } };
  field.display = getDisplayProcessor({ field, theme, timeZone });
  return field;
}

function timeField(values) {
  const field = { name: 'Time', type: FieldType.time, config: {}, values };
  field.display = getDisplayProcessor({ field, theme, timeZone });
  return field;
}

function seriesOf(panel) {
  return panel.targets.flatMap((target) =>
    (answers[panel.id]?.[target.refId] ?? []).map((one) => ({ ...one, name: legend(target, one.labels) })));
}

// One value each step, so that a gap in the answer is a gap in the picture.
const STEP = Math.max(1, Math.round((to - from) / 600));
function onGrid(values) {
  const byTime = new Map(values.map(([t, v]) => [Math.round((t - from) / STEP), v]));
  const count = Math.floor((to - from) / STEP) + 1;
  return Array.from({ length: count }, (_, i) => byTime.get(i) ?? null);
}

function Nothing({ panel }) {
  return <div style={{ display: 'flex', height: '100%', alignItems: 'center', justifyContent: 'center', color: theme.colors.text.secondary }}>
    {panel.fieldConfig.defaults.noValue}</div>;
}

function Stat({ panel, width, height }) {
  const series = seriesOf(panel);
  const value = series.length ? series[0].values.at(-1)[1] : null;
  const field = numberField(panel, 'value', [value], 0);
  const shown = value === null || Number.isNaN(value) ? { text: panel.fieldConfig.defaults.noValue, numeric: NaN, color: color('text') } : field.display(value);
  return <BigValue width={width} height={height} value={shown} colorMode={panel.options.colorMode} graphMode="none" justifyMode="auto" textMode="value" theme={theme} />;
}

// Annotations: a line where each begins, and a light band while it lasts.
function mark(builder) {
  builder.addHook('draw', (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    for (const { color: name, spans } of notes) {
      ctx.strokeStyle = ctx.fillStyle = color(name);
      ctx.setLineDash([4, 4]);
      for (const [begin, end] of spans) {
        const x = u.valToPos(begin * 1000, 'x', true), x2 = u.valToPos(end * 1000, 'x', true);
        ctx.globalAlpha = 0.04;
        ctx.fillRect(x, bbox.top, x2 - x, bbox.height);
        ctx.globalAlpha = 0.8;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
    }
    ctx.restore();
  });
  return null;
}

function Graph({ panel, width, height }) {
  const series = seriesOf(panel);
  if (!series.length) return <Nothing panel={panel} />;
  const times = Array.from({ length: Math.floor((to - from) / STEP) + 1 }, (_, i) => (from + i * STEP) * 1000);
  const frames = series.map((one, index) => {
    const values = onGrid(one.values);
    return { name: one.name, length: values.length, refId: 'A', fields: [timeField(times), numberField(panel, one.name, values, index)] };
  });
  return <TimeSeries frames={frames} width={width} height={height} timeRange={timeRange} timeZone={timeZone} legend={panel.options.legend} options={{}} structureRev={1}>{mark}</TimeSeries>;
}

function TimeAxis({ left, width, y }) {
  const ticks = [];
  const every = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600].find((s) => ((to - from) / s) * 80 < width - left) ?? 7200;
  for (let t = Math.ceil(from / every) * every; t <= to; t += every) ticks.push(t);
  return ticks.map((t) => <text key={t} x={left + ((t - from) / (to - from)) * (width - left)} y={y} fill={theme.colors.text.secondary} fontSize={11} textAnchor="middle">
    {new Date(t * 1000).toISOString().slice(11, 19)}</text>);
}

function StateTimeline({ panel, width, height }) {
  const series = seriesOf(panel);
  if (!series.length) return <Nothing panel={panel} />;
  const words = panel.fieldConfig.defaults.mappings[0].options;
  const left = Math.min(260, 20 + 7 * Math.max(...series.map((one) => one.name.length)));
  const plot = height - 44, row = plot / series.length;
  const x = (i) => left + (i * STEP / (to - from)) * (width - left);
  const seen = new Set();
  const shapes = series.flatMap((one, r) => {
    const values = onGrid(one.values), parts = [];
    for (let i = 0; i < values.length; ) {
      let j = i + 1;
      while (j < values.length && values[j] === values[i]) j++;
      if (values[i] !== null) {
        const word = words[String(values[i])];
        seen.add(String(values[i]));
        const w = Math.max(1, x(Math.min(j, values.length - 1)) - x(i));
        parts.push(<rect key={`${r}-${i}`} x={x(i)} y={r * row + row * 0.075} width={w} height={row * 0.85} fill={color(word?.color ?? 'text')} fillOpacity={0.85} />);
        if (word && w > 8 * word.text.length) parts.push(<text key={`${r}-${i}t`} x={x(i) + 6} y={r * row + row / 2 + 4} fontSize={12} fill="#111217">{word.text}</text>);
      }
      i = j;
    }
    return [<text key={r} x={left - 8} y={r * row + row / 2 + 4} fontSize={12} textAnchor="end" fill={theme.colors.text.primary}>{one.name}</text>, ...parts];
  });
  return <svg width={width} height={height} fontFamily={theme.typography.fontFamily}>
    {shapes}
    <TimeAxis left={left} width={width} y={plot + 14} />
    {[...seen].map((value, i) => <g key={value} transform={`translate(${left + i * 110},${height - 16})`}>
      <rect width={14} height={4} y={4} fill={color(words[value]?.color ?? 'text')} />
      <text x={20} y={10} fontSize={12} fill={theme.colors.text.primary}>{words[value]?.text ?? value}</text></g>)}
  </svg>;
}

const RAMP = [[48, 18, 59], [70, 107, 227], [40, 187, 236], [49, 242, 153], [162, 252, 60], [237, 208, 58], [251, 128, 34], [210, 49, 5], [122, 4, 3]];
function ramp(share) {
  const at = Math.min(RAMP.length - 1.001, Math.max(0, share) * (RAMP.length - 1)), i = Math.floor(at), f = at - i;
  return `rgb(${RAMP[i].map((c, k) => Math.round(c + (RAMP[i + 1][k] - c) * f)).join(',')})`;
}

function Heatmap({ panel, width, height }) {
  const series = seriesOf(panel).map((one) => ({ bound: one.labels.le === '+Inf' ? Infinity : Number(one.labels.le), values: onGrid(one.values) }));
  if (!series.length) return <Nothing panel={panel} />;
  series.sort((a, b) => a.bound - b.bound);
  const rows = series.slice(1).map((one, i) => ({ bound: one.bound, low: series[i].bound, values: one.values.map((v, t) => (v === null || series[i].values[t] === null ? null : Math.max(0, v - series[i].values[t]))) }));
  const max = Math.max(1e-9, ...rows.flatMap((one) => one.values.map((v) => v ?? 0)));
  const left = 70, bottom = 52, plot = height - bottom, h = plot / rows.length, count = rows[0].values.length, w = (width - left) / count;
  const format = (s) => { const d = getDisplayProcessor({ field: { type: FieldType.number, config: { unit: 's', decimals: 0 } }, theme })(s); return `${d.text}${d.suffix ?? ''}`; };
  return <svg width={width} height={height} fontFamily={theme.typography.fontFamily}>
    {rows.map((one, r) => one.values.map((v, t) => v > 1e-9 ?
      <rect key={`${r}-${t}`} x={left + t * w} y={plot - (r + 1) * h} width={Math.max(1, w - 1)} height={h - 1} fill={ramp(Math.sqrt(v / max))} /> : null))}
    {rows.map((one, r) => r % 2 === 0 ? <text key={r} x={left - 8} y={plot - r * h + 4} fontSize={11} textAnchor="end" fill={theme.colors.text.secondary}>{format(one.low)}</text> : null)}
    <TimeAxis left={left} width={width} y={plot + 16} />
    {Array.from({ length: 60 }, (_, i) => <rect key={i} x={left + i * 3} y={height - 24} width={3} height={8} fill={ramp(i / 59)} />)}
    <text x={left} y={height - 4} fontSize={11} fill={theme.colors.text.secondary}>0</text>
    <text x={left + 180} y={height - 4} fontSize={11} textAnchor="end" fill={theme.colors.text.secondary}>{max < 100 ? max.toPrecision(2) : Math.round(max).toLocaleString('en')}</text>
  </svg>;
}

function Table({ panel, height }) {
  const organize = panel.transformations.find((one) => one.id === 'organize').options;
  const several = panel.targets.length > 1, rows = new Map();
  for (const target of panel.targets) {
    for (const { labels, values } of answers[panel.id]?.[target.refId] ?? []) {
      const key = JSON.stringify(Object.entries(labels).sort());
      if (!rows.has(key)) rows.set(key, { ...labels });
      rows.get(key)[several ? `Value #${target.refId}` : 'Value'] = values.at(-1)[1];
    }
  }
  const columns = Object.keys(organize.indexByName).sort((a, b) => organize.indexByName[a] - organize.indexByName[b]);
  const [sort] = panel.options.sortBy.map((one) => columns.find((c) => organize.renameByName[c] === one.displayName));
  const sorted = [...rows.values()];
  if (sort) sorted.sort((a, b) => (b[sort] ?? 0) - (a[sort] ?? 0));
  if (!sorted.length) return <Nothing panel={panel} />;
  const cell = { padding: '5px 8px', borderBottom: `1px solid ${theme.colors.border.weak}`, whiteSpace: 'nowrap', overflow: 'hidden', textOverflow: 'ellipsis' };
  return <div style={{ height, overflow: 'hidden' }}><table style={{ borderCollapse: 'collapse', width: '100%', fontSize: 13 }}>
    <thead><tr>{columns.map((c) => <th key={c} style={{ ...cell, textAlign: c.startsWith('Value') ? 'right' : 'left', color: theme.colors.text.link, fontWeight: 500 }}>{organize.renameByName[c]}</th>)}</tr></thead>
    <tbody>{sorted.map((row, r) => <tr key={r}>{columns.map((c) => {
      if (!c.startsWith('Value')) return <td key={c} style={cell}>{row[c]}</td>;
      const heading = organize.renameByName[c];
      if (row[c] === undefined || Number.isNaN(row[c])) return <td key={c} style={{ ...cell, textAlign: 'right' }}>–</td>;
      const field = numberField(panel, heading, [row[c]], 0, heading), shown = field.display(row[c]);
      const filled = field.config.custom?.cellOptions?.type === 'color-background';
      return <td key={c} style={{ ...cell, textAlign: 'right', ...(filled ? { background: shown.color, color: theme.colors.getContrastText(shown.color) } : {}) }}>
        {`${shown.prefix ?? ''}${shown.text}${shown.suffix ?? ''}`}</td>;
    })}</tr>)}</tbody></table></div>;
}

const KINDS = { stat: Stat, timeseries: Graph, 'state-timeline': StateTimeline, heatmap: Heatmap, table: Table };

function place({ x, y, w, h }) {
  const unit = (WIDTH - 2 * GAP + GAP) / 24;
  return { left: GAP + x * unit, top: TOP + y * (CELL + GAP), width: w * unit - GAP, height: h * (CELL + GAP) - GAP };
}

function Panel({ panel }) {
  const { left, top, width, height } = place(panel.gridPos);
  if (panel.type === 'row') return <div style={{ position: 'absolute', left, top: top + 6, fontSize: 16, fontWeight: 500 }}>⌄ {panel.title}</div>;
  const Kind = KINDS[panel.type];
  return <div style={{ position: 'absolute', left, top, width, height }}>
    <PanelChrome title={panel.title} width={width} height={height}>
      {(w, h) => <Kind panel={panel} width={w} height={h} />}
    </PanelChrome></div>;
}

function Page() {
  return <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <div style={{ position: 'relative', width: WIDTH, minHeight: '100vh', background: theme.colors.background.canvas, color: theme.colors.text.primary, fontFamily: theme.typography.fontFamily }}>
      <div style={{ position: 'absolute', left: GAP + 4, top: 14, fontSize: 20, fontWeight: 500 }}>{board.title}
        <span style={{ fontSize: 13, fontWeight: 400, marginLeft: 16, color: theme.colors.text.secondary }}>{board.description}</span></div>
      <div style={{ position: 'absolute', right: GAP + 4, top: 18, fontSize: 13, color: theme.colors.text.secondary }}>
        {Object.entries(chosen).map(([name, value]) => <span key={name} style={{ marginRight: 24 }}>{name}: <b>{value.replaceAll('|', ', ')}</b></span>)}
        {new Date(from * 1000).toISOString().slice(11, 19)} to {new Date(to * 1000).toISOString().slice(11, 19)}</div>
      {board.panels.map((panel) => <Panel key={panel.id} panel={panel} />)}
    </div></ThemeContext.Provider>;
}

createRoot(document.getElementById('page')).render(<Page />);
