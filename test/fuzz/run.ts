/** Runs fuzzed inputs by the million, and watches for what must not happen: a crash, a hang, memory that grows. */
import process from 'node:process';
import { trendOf } from '../soak/trend.ts';
import { Source } from './source.ts';
import { type Target, targets } from './targets.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly inputs: number;
  /** Names of targets; default all. */
  readonly only?: readonly string[];
  /** The first input, to continue a run or to look at one input again. Default 0. */
  readonly from?: number;
  /** Ends earlier when this is over. Default never. */
  readonly withinMs?: number;
  /** Is told at once what broke and how to see it again, and the progress every now and then. */
  readonly say?: (text: string) => void;
}

export interface FuzzReport {
  readonly inputs: number;
  /** By target. */
  readonly counts: ReadonlyMap<string, number>;
  /** What went wrong, with what is needed to see it again. */
  readonly broken: readonly string[];
  readonly slowestMs: number;
  readonly slowest: string;
  /** Bytes of heap per million inputs, by least squares over the run without its first fifth. */
  readonly heapSlope: number;
  readonly heapBytes: number;
}

/** An input that takes more time of a processor hangs; a machine that is busy elsewhere is no hang of ours. */
export const hangMs = 1_000;
const maxBroken = 20;
const sampleEvery = 50_000;

export async function fuzz(options: FuzzOptions, all: readonly Target[] = targets): Promise<FuzzReport> {
  const { seed, inputs, from = 0, withinMs = Infinity, say } = options;
  const chosen = all.filter(({ name }) => options.only?.includes(name) ?? true);
  const wheel = wheelOf(chosen);
  const counts = new Map<string, number>();
  const broken: string[] = [];
  const broke = (target: Target, number: number, what: string) => {
    broken.push(`${target.name}, seed ${seed}, input ${number}: ${what}`);
    say?.(`BROKEN  ${broken.at(-1)}\n  again: ${replay(options, number)}`);
  };
  const samples: { readonly at: number; readonly heap: number }[] = [];
  const began = performance.now();
  let [slowestMs, slowest, done] = [0, '', 0];
  for (let number = from; number < from + inputs && broken.length < maxBroken; number++) {
    const target = wheel[number % wheel.length]!;
    const start = performance.now();
    const used = processorMs();
    try {
      const pending = target.run(new Source(`${seed} ${number}`));
      if (pending !== undefined) await pending;
    } catch (error) {
      broke(target, number, error instanceof Error ? error.stack ?? error.message : String(error));
    }
    // The clock on the wall is quick to read, and never behind the processor's.
    if (performance.now() - start > Math.min(hangMs, slowestMs)) {
      const took = processorMs() - used;
      if (took > slowestMs) [slowestMs, slowest] = [took, `${target.name}, input ${number}`];
      if (took > hangMs) broke(target, number, `takes ${Math.round(took)} ms`);
    }
    counts.set(target.name, (counts.get(target.name) ?? 0) + 1);
    if (++done % 1_000 === 0 && performance.now() - began > withinMs) break;
    if (done % sampleEvery !== 0) continue;
    samples.push({ at: done, heap: heapNow() });
    if (done % (sampleEvery * 10) === 0) say?.(progress(number, done, began, samples.at(-1)!.heap));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const heapBytes = samples.at(-1)?.heap ?? heapNow();
  const steady = samples.slice(Math.floor(samples.length / 5)).map(({ at, heap }) => ({ x: at / 1e6, y: heap }));
  const { slope: heapSlope } = trendOf(steady);
  return { inputs: done, counts, broken, slowestMs, slowest, heapSlope, heapBytes };
}

/** Targets in turn, each as often as its share says. */
function wheelOf(chosen: readonly Target[]): readonly Target[] {
  const wheel: Target[] = [];
  for (let round = 0; round < 100; round++) for (const target of chosen) if (round < target.share) wheel.push(target);
  return wheel;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function heapNow(): number {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc(force: boolean): void } };
  if (Bun !== undefined) Bun.gc(true);
  else gc?.();
  return process.memoryUsage().heapUsed;
}

/** The same input alone; which target a number belongs to depends on the targets chosen. */
function replay({ seed, only }: FuzzOptions, number: number): string {
  const names = only?.join(',');
  const targets = names === undefined ? '' : ` --only ${names.includes(' ') ? `'${names}'` : names}`;
  return `npm run fuzz -- --seed ${seed}${targets} --from ${number} --inputs 1`;
}

function progress(number: number, done: number, began: number, heap: number): string {
  const seconds = (performance.now() - began) / 1_000;
  return `up to input ${number}: ${done} inputs, ${Math.round(done / seconds)}/s, heap ${
    (heap / 2 ** 20).toFixed(1)
  } MiB`;
}
