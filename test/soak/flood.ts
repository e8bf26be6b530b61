/** The load test: one node under idle connections and a steady flood of messages; its memory must not grow, and nothing is lost. */
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { SoakProcess } from './soak_process.ts';
import { growsBeyond, trendOf } from './trend.ts';

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
  /** What is reachable: the parts collect their garbage before they answer. */
  readonly heap: number;
  readonly external: number;
  readonly cpuMs: number;
  /** Links that have ended, and dead letters. */
  readonly disconnects: number;
  readonly deadLetters: number;
}

interface Sample {
  readonly minute: number;
  readonly sink: Stats;
  readonly sender: Stats;
}

const mebibyte = 2 ** 20;
/** Growth above these, by more than chance explains, is a leak. Per minute. */
const maxHeapSlope = mebibyte;
const maxRssSlope = 4 * mebibyte;
/** A slope over less time says nothing. */
const judgedMinutes = 2;
const everyMs = 5_000;
/** Samples in a row in which nothing has arrived. */
const maxStill = 6;
/** A busy machine needs a while for a thousand handshakes. */
const connectMs = 300_000;

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
  const loads: number[] = [];
  let [still, longestStill] = [0, 0];
  while (performance.now() - began < minutes * 60_000) {
    await sleep(Math.min(everyMs, minutes * 6_000));
    const [sinkStats, senderStats] = await Promise.all([
      sink.child.ask<Stats>('stats'),
      sender.child.ask<Stats>('stats'),
    ]);
    const minute = (performance.now() - began) / 60_000;
    still = sinkStats.received === (samples.at(-1)?.sink.received ?? 0) ? still + 1 : 0;
    longestStill = Math.max(longestStill, still);
    samples.push({ minute, sink: sinkStats, sender: senderStats });
    loads.push(loadavg()[0]!);
    say(
      `${minute.toFixed(1)} min: ${sinkStats.received} messages, ${memoryOf(sinkStats)}${
        troublesOf(sinkStats, senderStats)
      }`,
    );
  }
  const told = await sender.child.ask<Stats>('stop');
  const { sent } = told;
  const received = async () => (await sink.child.ask<Stats>('stats')).received;
  const all = await eventually('all messages have arrived', async () => await received() >= sent).then(
    () => true,
    () => false,
  );
  const end = await sink.child.ask<Stats>('stats');
  const ends = await idle.child.ask<Stats>('stats');
  for (const { child } of [sender, idle, sink]) child.signal('SIGKILL');
  const broken: string[] = [];
  if (longestStill >= maxStill) broken.push(`nothing arrived for ${longestStill} samples`);
  if (!all) broken.push(`${sent - end.received} of ${sent} messages have not arrived`);
  if (end.lost > 0) broken.push(`${end.lost} messages lost`);
  if (end.doubled > 0) broken.push(`${end.doubled} messages doubled`);
  if (ends.ended > 0) broken.push(`${ends.ended} idle connections ended`);
  const memory = [
    slopes('node', samples.map(({ minute, sink: stats }) => ({ minute, stats }))),
    slopes('sender', samples.map(({ minute, sender: stats }) => ({ minute, stats }))),
  ];
  if (minutes >= judgedMinutes) broken.push(...memory.flatMap(({ grown }) => grown));
  if (broken.length > 0) { for (const { child } of [sink, sender]) say(child.output()); }
  return {
    broken: broken.map((text) => `${runtime}: ${text}`),
    lines: [
      ...rateLines(options, samples, loads),
      `  told ${sent}, received ${end.received}, lost ${end.lost}, doubled ${end.doubled}${troublesOf(end, told)}`,
      `  idle connections ${ends.links}, ended ${ends.ended}`,
      `  node before the flood: ${memoryOf(before)}`,
      ...memory.flatMap(({ lines }) => lines),
    ],
  };
}

function rateLines({ runtime, rate }: FloodOptions, samples: readonly Sample[], loads: readonly number[]): string[] {
  const { minute, sink } = samples.at(-1)!;
  const reached = sink.received / minute / 60;
  const load = loads.reduce((sum, value) => sum + value, 0) / loads.length;
  const cores = (sink.cpuMs - samples[0]!.sink.cpuMs) / (minute - samples[0]!.minute) / 60_000;
  return [
    `${runtime}: ${sink.received} messages in ${minute.toFixed(2)} min, ${Math.round(reached)}/s of ${rate}/s`,
    ...(reached < 0.98 * rate ? [`  THE RATE WAS NOT KEPT: ${Math.round(100 * reached / rate)} % of it`] : []),
    `  the node used ${cores.toFixed(2)} cores; the machine's load was ${load.toFixed(1)} on average`,
  ];
}

/**
 * Memory over the second half of the run. In the first half a runtime sets its heap up for the load: that is a step and no growth,
 * and it is shown as what it is.
 */
function slopes(who: string, all: readonly { readonly minute: number; readonly stats: Stats }[]) {
  const half = all.slice(Math.floor(all.length / 2));
  const grown: string[] = [];
  const slope = (name: string, of: (stats: Stats) => number, most = Infinity) => {
    const trend = trendOf(half.map(({ minute, stats }) => ({ x: minute, y: of(stats) })));
    if (growsBeyond(trend, most)) grown.push(`${who}: ${name} grows by ${mib(trend.slope)} a minute`);
    return `${name} ${mib(trend.slope)} ± ${mib(2 * trend.error)}`;
  };
  const most = mib(Math.max(...all.map(({ stats }) => stats.rss)));
  return {
    grown,
    lines: [
      `  ${who} at half time: ${memoryOf(half[0]!.stats)}; at the end: ${
        memoryOf(all.at(-1)!.stats)
      }; most rss ${most}`,
      `  ${who}, slope a minute over the second half: ${slope('heap', ({ heap }) => heap, maxHeapSlope)}, ${
        slope('external', ({ external }) => external, maxHeapSlope)
      }, ${slope('rss', ({ rss }) => rss, maxRssSlope)}`,
    ],
  };
}

/** What would explain a message that is missing. */
function troublesOf(sink: Stats, sender: Stats): string {
  const { lost } = sink;
  const [ended, dead] = [sink.disconnects + sender.disconnects, sink.deadLetters + sender.deadLetters];
  return lost + ended + dead === 0 ? '' : `; lost ${lost}, links ended ${ended}, dead letters ${dead}`;
}

function memoryOf({ heap, external, rss }: Stats): string {
  return `heap ${mib(heap)}, external ${mib(external)}, rss ${mib(rss)}`;
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
  for (const end = performance.now() + connectMs; !await holds();) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await sleep(200);
  }
}

function mib(bytes: number): string {
  return `${(bytes / mebibyte).toFixed(2)} MiB`;
}
