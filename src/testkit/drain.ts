/**
 * One hop through the runtime's event loop: when it comes back, every promise reaction that was ready has run. The
 * simulator needs it only where code under test uses promises; nothing else in a run touches real time.
 */

type Immediate = (run: () => void) => unknown;

let waiting: (() => void) | undefined;
let post: (() => void) | undefined;

function hop(run: () => void): void {
  const immediate = (globalThis as { setImmediate?: Immediate }).setImmediate;
  if (immediate !== undefined) {
    immediate(run);
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

/** Resolves in a later macrotask. */
export function drainPromises(): Promise<void> {
  return new Promise((resolve) => hop(resolve));
}
