/** Logs refused peers, but never more than a stranger who keeps connecting should be able to write. */
import type { Environment } from '../actor/environment.ts';
import { LineBudget } from '../actor/line_budget.ts';
import type { DialFailure } from './contract.ts';

export class RefusalLog {
  readonly #environment: Environment;
  readonly #budget: LineBudget;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#budget = new LineBudget(environment);
  }

  /** The last line of a window says that the rest of it is silent; `total` counts on all the same. */
  refused(failure: DialFailure & { readonly from?: string }, total: number): void {
    const more = this.#budget.take();
    if (more !== undefined) this.#environment.log.warn('peer refused', { ...failure, total, ...more });
  }
}
