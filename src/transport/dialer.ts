/** When one address is dialled: at once, or after a wait that grows with each failure. One dial at a time. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { type Address, type DialFailure, isLink, type Link, type Transport } from './contract.ts';

export interface DialerOwner {
  readonly environment: Environment;
  readonly transport: Transport;
  /** A dial has started. */
  dialled(): void;
  opened(link: Link): void;
  failed(failure: DialFailure): void;
}

export class Dialer {
  private readonly address: Address;
  private readonly owner: DialerOwner;
  private running: Cancel | undefined = undefined;
  private waiting: Cancel | undefined = undefined;
  private failures = 0;
  private notBefore = -Infinity;

  constructor(address: Address, owner: DialerOwner) {
    this.address = address;
    this.owner = owner;
  }

  get dialling(): boolean {
    return this.running !== undefined;
  }

  get idle(): boolean {
    return this.running === undefined && this.waiting === undefined;
  }

  /** Dials as soon as the wait after the last failure is over. */
  request(): void {
    if (!this.idle) return;
    const { clock, timers } = this.owner.environment;
    const waitMs = this.notBefore - clock.now();
    if (waitMs <= 0) return this.dial();
    this.waiting = timers.set(waitMs, () => {
      this.waiting = undefined;
      this.dial();
    });
  }

  /** Dials now, whatever the wait. */
  insist(): void {
    if (this.running !== undefined) return;
    this.waiting?.();
    this.waiting = undefined;
    this.dial();
  }

  cancel(): void {
    this.running?.();
    this.waiting?.();
    this.running = this.waiting = undefined;
  }

  /** A link works: no wait next time. */
  succeeded(): void {
    this.cancel();
    this.failures = 0;
    this.notBefore = -Infinity;
  }

  /** Something went wrong: the next request waits, up to `limits.redialMaxMs`, give or take a quarter. */
  backOff(): void {
    const { clock, random } = this.owner.environment;
    const waitMs = Math.min(limits.redialMaxMs, limits.redialMs * 2 ** Math.min(this.failures++, 10));
    this.notBefore = clock.now() + waitMs * (0.75 + random.next() / 2);
  }

  private dial(): void {
    this.owner.dialled();
    this.running = this.owner.transport.dial(this.address, (outcome) => {
      this.running = undefined;
      if (isLink(outcome)) return this.owner.opened(outcome);
      this.backOff();
      this.owner.failed(outcome);
    });
  }
}
