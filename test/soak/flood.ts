/** The load test: one node under idle connections and a steady flood of messages; its memory must not grow, and nothing is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { SoakProcess } from './soak_process.ts';

export interface FloodOptions {
  readonly runtime: RuntimeName;
  readonly minutes: number;
  /** Messages a second. */
  readonly rate: number;
  readonly connections: number;
  readonly say: (text: string) => void;
}

export interface FloodResult {
  readonly lines: readonly string[];
  readonly broken: readonly string[];
}

interface Stats {
  readonly received: number;
  readonly lost: number;
  readonly doubled: number;
  readonly sent: number;
  readonly links: number;
  readonly ended: number;
  readonly rss: number;
  readonly heap: number;
}

interface Sample extends Stats {
  readonly minute: number;
}

/** Growth above this is a leak; a collector's noise over a few minutes is below it. */
const maxHeapSlope = 1024 * 1024;

export async function flood(options: FloodOptions): Promise<FloodResult> {
  const { runtime, minutes, rate, connections, say } = options;
  const sink = await part(runtime, 'sink', []);
  const seed = ['--seed', sink.address];
  const idle = await part(runtime, 'idle', [...seed, '--count', String(connections)]);
  await eventually(
    'the connections are in use',
    async () => (await idle.child.ask<Stats>('stats')).links === connections,
  );
  const before = await sink.child.ask<Stats>('stats');
  const sender = await part(runtime, 'sender', [...seed, '--rate', String(rate)]);
  const began = performance.now();
  const samples: Sample[] = [];
  while (performance.now() - began < minutes * 60_000) {
    await sleep(Math.min(5_000, minutes * 6_000));
    const stats = await sink.child.ask<Stats>('stats');
    samples.push({ ...stats, minute: (performance.now() - began) / 60_000 });
    say(
      `${samples.at(-1)!.minute.toFixed(1)} min: ${stats.received} messages, heap ${mib(stats.heap)}, rss ${
        mib(stats.rss)
      }`,
    );
  }
  const last = samples.at(-1)!;
  const ends = await idle.child.ask<Stats>('stats');
  const told = await sender.child.ask<Stats>('stats');
  for (const { child } of [sender, idle, sink]) child.signal('SIGKILL');
  const slope = (of: (sample: Sample) => number) => slopeOf(samples.slice(Math.floor(samples.length / 4)), of);
  const heapSlope = slope(({ heap }) => heap);
  const broken: string[] = [];
  if (last.lost > 0) broken.push(`${runtime}: ${last.lost} messages lost`);
  if (last.doubled > 0) broken.push(`${runtime}: ${last.doubled} messages doubled`);
  if (ends.ended > 0) broken.push(`${runtime}: ${ends.ended} idle connections ended`);
  if (minutes >= 2 && heapSlope > maxHeapSlope) broken.push(`${runtime}: the heap grows by ${mib(heapSlope)} a minute`);
  return {
    broken,
    lines: [
      `${runtime}: ${last.received} messages in ${last.minute.toFixed(2)} min, ${
        Math.round(last.received / last.minute / 60)
      }/s`,
      `  lost ${last.lost}, doubled ${last.doubled}, told ${told.sent}`,
      `  idle connections ${ends.links}, ended ${ends.ended}`,
      `  heap ${mib(before.heap)} before, ${mib(last.heap)} at the end, slope ${mib(heapSlope)} a minute`,
      `  rss ${mib(before.rss)} before, ${mib(last.rss)} at the end, slope ${mib(slope(({ rss }) => rss))} a minute`,
    ],
  };
}

async function part(runtime: RuntimeName, name: string, flags: readonly string[]) {
  const { file, args } = runtimeCommand(runtime, true);
  const [before, after] = runtime === 'node'
    ? [['--expose-gc'], []]
    : runtime === 'deno'
    ? [[], ['--v8-flags=--expose-gc', '--allow-read', '--allow-env', '--allow-sys']]
    : [[], []];
  const command = [...before, ...args, ...after, 'test/soak/flood_node.ts', '--part', name, ...flags];
  const child = new SoakProcess(`${runtime} ${name}`, file, command);
  const address = await child.line('starts', (line) => /^node (\S+) uid/.exec(line)?.[1]);
  return { child, address };
}

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; !await holds();) {
    if (performance.now() > end) throw new Error(`not within a minute: ${what}`);
    await sleep(200);
  }
}

/** By least squares, per minute. */
function slopeOf(samples: readonly Sample[], of: (sample: Sample) => number): number {
  if (samples.length < 2) return 0;
  const meanX = samples.reduce((sum, { minute }) => sum + minute, 0) / samples.length;
  const meanY = samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const over = samples.reduce((sum, sample) => sum + (sample.minute - meanX) * (of(sample) - meanY), 0);
  const under = samples.reduce((sum, { minute }) => sum + (minute - meanX) ** 2, 0);
  return under === 0 ? 0 : over / under;
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}
