/** What happens to singletons, on the system's event stream and to the cluster's subscribers. */
import type { Address } from '../transport/contract.ts';

/** An instance has started on this node. */
export class SingletonHosted {
  readonly kind = 'SingletonHosted';
  readonly name: string;
  readonly host: Address;
  readonly epoch: number;
  readonly reason: 'first-start' | 'planned' | 'crash' | 'restart';
  readonly from: Address | undefined;
  /** Milliseconds without an instance, as far as the new host knows. */
  readonly gapMs: number | undefined;
  constructor(fields: Omit<SingletonHosted, 'kind'>) {
    this.name = fields.name;
    this.host = fields.host;
    this.epoch = fields.epoch;
    this.reason = fields.reason;
    this.from = fields.from;
    this.gapMs = fields.gapMs;
  }
}

/** The singleton has moved to this node. */
export class SingletonHandOver {
  readonly kind = 'SingletonHandOver';
  readonly name: string;
  /** After a crash the member that had hosted; undefined where this node had not heard of it. */
  readonly from: Address | undefined;
  readonly to: Address;
  readonly reason: 'planned' | 'crash';
  /** Milliseconds without an instance, as far as the new host knows. */
  readonly gapMs: number | undefined;
  readonly epoch: number;
  constructor(fields: Omit<SingletonHandOver, 'kind'>) {
    this.name = fields.name;
    this.from = fields.from;
    this.to = fields.to;
    this.reason = fields.reason;
    this.gapMs = fields.gapMs;
    this.epoch = fields.epoch;
  }
}

/** The instance on this node has ended. */
export class SingletonStopped {
  readonly kind = 'SingletonStopped';
  readonly name: string;
  readonly host: Address;
  readonly epoch: number;
  readonly cause: 'planned' | 'died';
  constructor(fields: Omit<SingletonStopped, 'kind'>) {
    this.name = fields.name;
    this.host = fields.host;
    this.epoch = fields.epoch;
    this.cause = fields.cause;
  }
}

/** The one exception to "never two": this node hosts although silent members gave no answer (policy `host-anyway`). */
export class SingletonHostedAnyway {
  readonly kind = 'SingletonHostedAnyway';
  readonly name: string;
  readonly host: Address;
  readonly silent: readonly Address[];
  constructor(fields: Omit<SingletonHostedAnyway, 'kind'>) {
    this.name = fields.name;
    this.host = fields.host;
    this.silent = fields.silent;
  }
}
