/** A graceful leave: `leaving`, the registered tasks, `exiting`, removal by the leader; each wait is bounded. */
import type { Cancel } from '../actor/environment.ts';
import { selfReached } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';

/** How long an exiting node waits for its removal, in milliseconds. */
const removalWaitMs = 5_000;
const defaultLeaveTimeoutMs = 10_000;

export class LeaveProcess {
  #node: NodeContext;
  #tasks = new Set<(done: () => void) => void>();
  #timer: Cancel | undefined;
  #begun = false;

  constructor(node: NodeContext) {
    this.#node = node;
  }

  onLeaving(task: (done: () => void) => void): Cancel {
    this.#tasks.add(task);
    return () => void this.#tasks.delete(task);
  }

  stop(): void {
    this.#timer?.();
    this.#timer = undefined;
  }

  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    if (this.#node.membership().phase === 'outside') {
      return this.#node.dispatch({ kind: 'end', why: 'left before it had joined', selfDown: false, rejoin: false });
    }
    this.#node.dispatch({ kind: 'leaving' });
    this.#runTasks();
  }

  #runTasks(): void {
    const { timers } = this.#node.environment;
    const waiting = new Set(this.#tasks);
    const done = (task: (done: () => void) => void): void => {
      if (waiting.delete(task) && waiting.size === 0) this.#exit();
    };
    this.#timer = timers.set(this.#node.settings.leaveTimeoutMs ?? defaultLeaveTimeoutMs, () => {
      this.#node.environment.log.warn('leave tasks took too long, leaving without them', { left: waiting.size });
      waiting.clear();
      this.#exit();
    });
    if (waiting.size === 0) return this.#exit();
    for (const task of [...waiting]) {
      try {
        task(() => done(task));
      } catch (error) {
        this.#node.environment.log.error('a leave task failed', { error: String(error) });
        done(task);
      }
    }
  }

  #exit(): void {
    this.stop();
    if (this.#node.membership().phase !== 'member' || selfReached(this.#node.membership(), 'exiting')) return;
    this.#timer = this.#node.environment.timers.set(removalWaitMs, () => {
      this.#node.environment.log.warn('not removed in time, leaving without confirmation');
      this.#node.dispatch({ kind: 'end', why: 'left', selfDown: false, rejoin: false });
    });
    this.#node.dispatch({ kind: 'exiting' });
  }
}
