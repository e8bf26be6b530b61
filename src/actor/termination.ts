/** The end of an actor system: drain `/user`, stop it, stop `/system`. Each step is bounded. */
import type { Cell } from './cell.ts';
import type { Cancel, Environment } from './environment.ts';

/** How often it is looked whether all mailboxes are empty. */
const pollMs = 5;

export class Termination {
  private readonly environment: Environment;
  private readonly user: Cell;
  private readonly system: Cell;
  private readonly drainTimeoutMs: number;
  private readonly stopTimeoutMs: number;
  readonly finished: Promise<void>;
  private finish: () => void = () => {};
  started = false;

  constructor(environment: Environment, user: Cell, system: Cell, drainTimeoutMs: number, stopTimeoutMs: number) {
    this.environment = environment;
    this.user = user;
    this.system = system;
    this.drainTimeoutMs = drainTimeoutMs;
    this.stopTimeoutMs = stopTimeoutMs;
    this.finished = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  start(): void {
    if (this.started) return;
    this.started = true;
    const deadline = this.environment.clock.now() + this.drainTimeoutMs;
    this.drain(deadline, () => this.stop(this.user, () => this.stop(this.system, this.finish)));
  }

  private drain(deadline: number, next: () => void): void {
    const left = deadline - this.environment.clock.now();
    if (left <= 0 || isQuiet(this.user)) return next();
    this.environment.timers.set(Math.min(pollMs, left), () => this.drain(deadline, next));
  }

  private stop(guardian: Cell, next: () => void): void {
    let timer: Cancel | undefined = undefined;
    guardian.onTermination(() => {
      timer?.();
      next();
    });
    guardian.stop('stop');
    if (guardian.isTerminated) return;
    timer = this.environment.timers.set(this.stopTimeoutMs, () => {
      const names = stuck(guardian).map((cell) => cell.path);
      this.environment.log.error(
        `killed, since they did not stop within ${this.stopTimeoutMs} ms: ${names.join(', ')}`,
      );
      guardian.kill();
    });
  }
}

function isQuiet(cell: Cell): boolean {
  return cell.isQuiet && cell.childCells().every(isQuiet);
}

/** The lowest actors that have not ended: the ones all others wait for. */
function stuck(cell: Cell): readonly Cell[] {
  const children = cell.childCells();
  return children.length === 0 ? [cell] : children.flatMap(stuck);
}
