/** Ours beside the peers': how many times better, and what stands in for a peer that is not at hand. */
import { costs, type Row, short } from './measure.ts';

interface Recorded {
  readonly what: string;
  readonly unit: string;
  /** On Bun, Deno and Node. */
  readonly values: readonly [number, number, number];
  /** What the same machine did at most, by the name of the row that measures it here. */
  readonly limit?: { readonly row: string; readonly values: readonly [number, number, number] };
}

const burst = { row: 'queue plus call, burst of a million', values: [24e6, 66e6, 47e6] } as const;
const frames = { row: 'raw WebSocket, one 100 B frame a message', values: [237e3, 586e3, 178e3] } as const;
const pings = { row: 'raw ping-pong p50 (spread: p10, p99)', values: [57, 81, 74] } as const;

/**
 * actor-ts 0.16, which no registry has, measured once on another machine of two cores. Of the gap after a crash, 2.1 to
 * 2.4 s, the shortest.
 */
const actorTs: readonly Recorded[] = [
  { what: 'local tell, chunks of 10 000', unit: 'msg/s', values: [11.2e6, 6.9e6, 9.9e6] },
  { what: 'local tell, burst of a million', unit: 'msg/s', values: [5.9e6, 4.3e6, 4.4e6], limit: burst },
  { what: 'local tell, 1 000 actors', unit: 'msg/s', values: [6.9e6, 5e6, 6.4e6] },
  { what: 'local ask, one at a time', unit: 'asks/s', values: [897e3, 310e3, 595e3] },
  { what: 'local ask, 100 in flight', unit: 'asks/s', values: [1.39e6, 340e3, 1.26e6] },
  { what: 'actors started', unit: 'actors/s', values: [157e3, 116e3, 45e3] },
  { what: 'heap of an idle actor, its ref held', unit: 'B', values: [1_500, 1_900, 1_900] },
  { what: 'remote tell 100 B through the singleton ref', unit: 'msg/s', values: [111e3, 126e3, 133e3], limit: frames },
  { what: 'remote tell 100 B to an ordinary actor', unit: 'msg/s', values: [126e3, 132e3, 146e3], limit: frames },
  { what: 'remote ask p50 (spread: p10, p99)', unit: 'µs', values: [113, 172, 143], limit: pings },
  { what: 'remote ask, 100 in flight', unit: 'asks/s', values: [58e3, 48e3, 60e3], limit: frames },
  { what: 'kill -9 of the host, gap at 1 000 msg/s', unit: 'ms', values: [2_100, 2_100, 2_100] },
  { what: 'memory of a node at rest, installed package', unit: 'MiB', values: [57, 84, 93] },
  { what: 'processor time at rest, each of 3 nodes', unit: '% of a core', values: [0.6, 0.5, 0.3] },
];

const columns: readonly string[] = ['bun', 'deno', 'node'];

/** How many times better `ours` is. */
const better = (unit: string, ours: number, theirs: number): number => costs.has(unit) ? theirs / ours : ours / theirs;

/** Rows of the peer whose figures are kept here, of what this run measured of ours; none where it ran itself. */
export function recordedRows(runtime: string, rows: readonly Row[]): Row[] {
  const column = columns.indexOf(runtime);
  if (column < 0 || rows.some(({ peer }) => peer === 'actor-ts')) return [];
  return actorTs.flatMap(({ what, unit, values, limit }) => {
    const own = rows.find((row) => row.peer === undefined && row.what === what);
    if (own === undefined) return [];
    const value = values[column]!;
    const row: Row = { what, unit, value, spread: [value, value], peer: 'actor-ts 0.16, recorded' };
    const limitNow = rows.find((one) => one.what === limit?.row)?.value;
    if (limit === undefined || limitNow === undefined) return [row];
    return [{ ...row, oursByLimit: better(unit, own.value / limitNow, value / limit.values[column]!) }];
  });
}

/** Each row of a peer with how many times better ours of the same name is. */
export function besideOurs(rows: readonly Row[]): Row[] {
  return rows.map((row) => {
    if (row.peer === undefined) return row;
    const own = rows.find(({ peer, what }) => peer === undefined && what === row.what);
    return own === undefined ? row : { ...row, ours: better(row.unit, own.value, row.value) };
  });
}

export function ratioText({ value, limit, ours, oursByLimit }: Row): string {
  if (limit !== undefined) return `${(value / limit.value).toPrecision(3)} × ${limit.what}`;
  if (ours === undefined) return '';
  const byLimit = oursByLimit === undefined ? '' : `; by the limits of both machines ${short(oursByLimit)} ×`;
  return `ours ${short(ours)} × better${byLimit}`;
}
