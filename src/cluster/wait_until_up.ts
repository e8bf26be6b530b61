/** The promise of a join: the one place where the outcome of all the seeding becomes a value or an error. */
import type { Cancel } from '../actor/environment.ts';
import { JoinError } from './join_error.ts';
import type { ClusterNode } from './node.ts';

export interface JoinOptions {
  /** Default: none, retries go on. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Resolves once `node` is `up`.
 * @throws JoinError on time-out, abort, or when the node ends before; it lists each seed and why it did not help.
 */
export function waitUntilUp(node: ClusterNode, { timeoutMs, signal }: JoinOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancels: Cancel[] = [];
    const settle = (run: () => void): void => {
      for (const cancel of cancels.splice(0)) cancel();
      run();
    };
    const fail = (why: string): void => settle(() => reject(new JoinError(why, node.seedReasons())));
    const giveUp = (why: string): void => {
      fail(why);
      node.dispatch({ kind: 'end', why, selfDown: false, rejoin: false });
    };
    const check = (): void => {
      const end = node.ended();
      if (end !== undefined) fail(end.why);
      else if (node.view().self.status !== 'joining') settle(resolve);
    };
    cancels.push(node.onChange(check));
    if (timeoutMs !== undefined) {
      const late = (): void => giveUp(`not up within ${timeoutMs} ms, ${node.readiness() ?? 'almost there'}`);
      cancels.push(node.environment.timers.set(timeoutMs, late));
    }
    if (signal !== undefined) {
      const abort = (): void => giveUp('aborted');
      signal.addEventListener('abort', abort, { once: true });
      cancels.push(() => signal.removeEventListener('abort', abort));
      if (signal.aborted) return abort();
    }
    check();
  });
}
