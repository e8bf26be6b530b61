/** The measured rows as a table, and as plots with a logarithmic scale of sizes. */
import type { ScaleRow } from './measure.ts';

const number = (value: number): string =>
  value >= 10_000 ? `${(value / 1_000).toFixed(0)} k` : value >= 100 ? value.toFixed(0) : value.toPrecision(3);

export function scaleTable(rows: readonly ScaleRow[]): string {
  const lines = rows.map(({ members, rest, change, leave }) => {
    const leaving = leave === undefined ? ['not measured', '', ''] : [
      `${leave.leavers} in ${number(leave.ms)} ms`,
      number(leave.cost.frames * leave.ms / 1_000 / leave.leavers),
      number(leave.bytesPerNode / leave.leavers),
    ];
    const columns = [
      String(members),
      number(rest.frames),
      number(rest.bytes),
      number(change.everybodyMs / 1_000),
      number(change.leaderMs / 1_000),
      number(change.bytesPerNode),
      ...leaving,
    ];
    return `| ${columns.join(' | ')} |`;
  });
  return [
    '| members | frames/s at rest | bytes/s at rest | a change reaches all, rounds | the leader knows, rounds | bytes for it | a tenth leaves | frames for each leave | bytes for each leave |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

export interface Plot {
  readonly name: string;
  readonly svg: string;
}

type Line = readonly (readonly [members: number, value: number])[];

export function scalePlots(rows: readonly ScaleRow[]): Plot[] {
  const rest = rows.map(({ members, rest }) => [members, rest.bytes] as const);
  const leaves = rows.flatMap(({ members, leave }) =>
    leave === undefined ? [] : [[members, leave.bytesPerNode / leave.leavers] as const]
  );
  return [
    { name: 'scale-rest', svg: plot('bytes per node and second at rest, by members', rest) },
    { name: 'scale-leave', svg: plot('bytes that each leave costs a node, while a tenth leaves, by members', leaves) },
  ];
}

const [width, height, left, right, top, bottom] = [560, 240, 56, 16, 32, 28];

function plot(title: string, line: Line): string {
  const most = Math.max(...line.map(([, value]) => value)) * 1.15;
  const [first, last] = [Math.log10(line[0]?.[0] ?? 1), Math.log10(line.at(-1)?.[0] ?? 10)];
  const x = (members: number): number =>
    left + (Math.log10(members) - first) / (last - first || 1) * (width - left - right);
  const y = (value: number): number => height - bottom - value / most * (height - top - bottom);
  const points = line.map(([members, value]) => `${x(members).toFixed(1)},${y(value).toFixed(1)}`);
  const marks = line.map(([members, value]) => {
    const [cx, cy] = [x(members).toFixed(1), y(value).toFixed(1)];
    return `<circle cx="${cx}" cy="${cy}" r="3" fill="#1565c0"/>` +
      `<text x="${cx}" y="${y(value) - 8}" text-anchor="middle">${number(value)}</text>` +
      `<text x="${cx}" y="${height - 10}" text-anchor="middle">${members}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">` +
    `<rect width="100%" height="100%" fill="#fff"/><text x="${left}" y="16" font-weight="bold">${title}</text>` +
    `<path d="M${left} ${y(0)}H${width - right}" stroke="#999"/>` +
    `<polyline points="${points.join(' ')}" fill="none" stroke="#1565c0" stroke-width="2"/>${marks.join('')}</svg>\n`;
}
