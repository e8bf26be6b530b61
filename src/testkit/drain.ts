/**
 * When this comes back, every promise reaction that was ready has run, and those that became ready meanwhile. The simulator
 * needs it only where code under test uses promises; nothing else in a run touches real time.
 */

type Defer = (run: () => void) => unknown;

const { process: ticks, setImmediate } = globalThis as {
  readonly process?: { readonly nextTick?: Defer };
  readonly setImmediate?: Defer;
};

/** So often a hop goes through the event loop, so that timers and sockets of whoever runs the world get their turn. */
const hopsPerTurn = 1_000;

let waiting: (() => void) | undefined;
let post: (() => void) | undefined;
let hops = 0;

/** In a later macrotask. */
function turn(run: () => void): void {
  if (setImmediate !== undefined) {
    setImmediate(run);
    return;
  }
  waiting = run;
  if (post === undefined) {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => waiting?.();
    post = () => channel.port2.postMessage(null);
  }
  post();
}

/**
 * What a microtask puts off to the next tick runs once no microtask is left, and costs a fraction of a turn of the event
 * loop. Where there are no ticks only such a turn will do.
 */
function hop(run: () => void): void {
  if (ticks?.nextTick === undefined || ++hops % hopsPerTurn === 0) turn(run);
  else ticks.nextTick(run);
}

/** Not for several callers at once. */
export function drainPromises(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => hop(resolve)));
}
