/** Bar charts of the benchmarks as SVG, readable on light and dark pages. */
import type { RuntimeRows } from './compare.ts';
import { type Row, short } from './measure.ts';

export interface Plot {
  readonly name: string;
  readonly svg: string;
}

const colours: Readonly<Record<string, string>> = { bun: '#c2703d', deno: '#3d7ec2', node: '#3f9a53' };
const [width, labelWidth, barHeight, groupGap, top] = [760, 300, 14, 12, 34];

/** Rows of the same unit share a chart, and a scale. */
const charts: readonly { readonly name: string; readonly title: string; readonly units: readonly string[] }[] = [
  {
    name: 'throughput',
    title: 'Messages, asks and actors per second (logarithmic)',
    units: ['msg/s', 'asks/s', 'actors/s'],
  },
  { name: 'gaps', title: 'Milliseconds without answers, and to start (logarithmic)', units: ['ms'] },
  { name: 'memory', title: 'Memory of a node at rest, MiB (logarithmic)', units: ['MiB'] },
];

export function plots(table: readonly RuntimeRows[]): Plot[] {
  return charts.map(({ name, title, units }) => ({ name, svg: chart(title, units, table) }));
}

function chart(title: string, units: readonly string[], table: readonly RuntimeRows[]): string {
  const names = [...new Set(table.flatMap(({ rows }) => rows.filter(wanted(units)).map(({ what }) => what)))];
  const values = table.flatMap(({ rows }) => rows.filter(wanted(units)).map(({ value }) => value));
  const least = Math.min(...values) / 2;
  const scale = (value: number): number =>
    (width - labelWidth - 80) * Math.log(value / least) / Math.log(Math.max(...values) / least);
  const parts: string[] = [text(8, 20, title, 'start', 'bold')];
  let y = top;
  for (const what of names) {
    parts.push(text(labelWidth - 8, y + barHeight * table.length / 2 + 4, what, 'end'));
    for (const { runtime, rows } of table) {
      const row = rows.find((one) => one.what === what);
      if (row !== undefined) parts.push(bar(runtime, y, scale(row.value), `${short(row.value)} ${row.unit}`));
      y += barHeight;
    }
    y += groupGap;
  }
  const legend = table.map(({ runtime }, n) =>
    text(width - 180 + n * 60, 20, runtime, 'start', 'bold', colours[runtime])
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" font-family="sans-serif" font-size="11">` +
    `<rect width="100%" height="100%" fill="#fff"/>${parts.join('')}${legend.join('')}</svg>\n`;
}

const wanted = (units: readonly string[]) => ({ unit, peer }: Row): boolean =>
  peer === undefined && units.includes(unit);

function bar(runtime: string, y: number, length: number, label: string): string {
  const rectangle = `<rect x="${labelWidth}" y="${y}" width="${length.toFixed(1)}" height="${barHeight - 2}" fill="${
    colours[runtime]
  }"/>`;
  return rectangle + text(labelWidth + length + 4, y + barHeight - 4, label, 'start');
}

function text(x: number, y: number, words: string, anchor: string, weight = 'normal', fill = '#222'): string {
  const safe = words.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<text x="${
    x.toFixed(1)
  }" y="${y}" text-anchor="${anchor}" font-weight="${weight}" fill="${fill}">${safe}</text>`;
}
