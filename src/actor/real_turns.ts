/**
 * Turns of a real event loop. `setImmediate` where there is one: it lets sockets and timers have their chance, which a
 * channel that posts to itself does not (runtimes deliver a thousand of its messages before they look at the network).
 * Some loops look at sockets only every so many immediates, so that after 5 ms of continuous work one turn is taken by
 * `setTimeout(0)`. Elsewhere (browsers, isolates) each turn has a channel of its own, closed after use, so that nothing
 * stays open while nothing is scheduled.
 */
import type { SoonTurns } from './dispatcher.ts';

/** Continuous work after which a turn is given up to timers and sockets for certain. */
const breakAfterMs = 5;
/** A pause between two turns that counts as rest. */
const restMs = 1;

interface Globals {
  readonly setImmediate?: (run: () => void) => unknown;
  readonly MessageChannel?: typeof MessageChannel;
}

export function realTurns(now: () => number): SoonTurns {
  const { setImmediate: immediate, MessageChannel: Channel } = globalThis as Globals;
  const quick = immediate !== undefined
    ? (run: () => void): void => void immediate(run)
    : Channel !== undefined
    ? channelTurn(Channel)
    : timerTurn;
  let busySince = 0;
  let lastEnd = -Infinity;
  const rested = (run: () => void) => (): void => {
    run();
    lastEnd = now();
  };
  return {
    schedule(run) {
      const at = now();
      if (at - lastEnd > restMs && at - busySince > restMs) busySince = at;
      if (at - busySince < breakAfterMs) return quick(rested(run));
      timerTurn(() => {
        busySince = now();
        rested(run)();
      });
    },
    soon: (run) => queueMicrotask(run),
  };
}

function timerTurn(run: () => void): void {
  setTimeout(run, 0);
}

function channelTurn(Channel: typeof MessageChannel): (run: () => void) => void {
  return (run) => {
    const { port1, port2 } = new Channel();
    port1.onmessage = () => {
      port1.close();
      run();
    };
    port2.postMessage(0);
  };
}
