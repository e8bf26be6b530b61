import type { DowningDecision, DowningStrategy } from './contract.ts';

/**
 * No strategy: unreachable members stay until an operator marks them down or they come back, and no host gate stops a
 * node that is cut off. "Never two" then rests on the operator.
 */
export class ManualDowning implements DowningStrategy {
  readonly name = 'manual';
  readonly parameters = {};
  readonly gated = false;

  decide(): DowningDecision {
    return new Set();
  }

  keeps(): boolean {
    return true;
  }
}
