/**
 * Logs messages that cannot be sent. A sender that goes on trying must not fill the log, so all senders of a node have one
 * budget; each message is a dead letter all the same.
 */
import type { Environment } from './environment.ts';
import { LineBudget } from './line_budget.ts';

const budgets = new WeakMap<object, LineBudget>();

/** `environment`: that of the node. */
export function logUnsendable(
  environment: Environment,
  message: string,
  fields: Readonly<Record<string, unknown>>,
): void {
  let budget = budgets.get(environment);
  if (budget === undefined) budgets.set(environment, budget = new LineBudget(environment));
  const more = budget.take();
  if (more !== undefined) environment.log.error(message, { ...fields, ...more });
}
