/**
 * The rate buckets of one grant, at one node. They outlive connections: who connects again goes on with what there was, so that
 * all holders of a token together say no more than `maxCallers` buckets let through, however often they connect.
 */
import type { ResolvedGrant } from '../cluster/caller_grants.ts';
import { RateBucket } from './rate.ts';

export interface PoolState {
  /** Buckets that connections hold. */
  readonly held: number;
  /** When each of the others that are not full will be; ascending. One that is full is as good as a new one. */
  readonly fullAt: readonly number[];
}

export type PoolEvent =
  | { readonly kind: 'taken' }
  /** A connection has ended; `fullAt`: when its bucket will be full. */
  | { readonly kind: 'returned'; readonly fullAt: number };

export interface PoolRules {
  /** Buckets there are. */
  readonly max: number;
  /** What takes longer than this to be full is too empty to begin with. Milliseconds. */
  readonly fullWithinMs: number;
}

export interface PoolStep {
  readonly state: PoolState;
  /** `taken`: when the bucket will be full. Undefined: there is none to begin with now. */
  readonly fullAt?: number;
}

export const initialPool: PoolState = { held: 0, fullAt: [] };

export function stepPool(state: PoolState, event: PoolEvent, now: number, rules: PoolRules): PoolStep {
  const waiting = state.fullAt.filter((at) => at > now);
  switch (event.kind) {
    case 'taken': {
      if (state.held >= rules.max) return { state: { ...state, fullAt: waiting } };
      const held = state.held + 1;
      if (held + waiting.length <= rules.max) return { state: { held, fullAt: waiting }, fullAt: now };
      const [fullest = now, ...others] = waiting;
      if (fullest - now > rules.fullWithinMs) return { state: { ...state, fullAt: waiting } };
      return { state: { held, fullAt: others }, fullAt: fullest };
    }
    case 'returned': {
      const fullAt = event.fullAt > now ? [...waiting, event.fullAt].sort((a, b) => a - b) : waiting;
      return { state: { held: state.held - 1, fullAt } };
    }
    default:
      return event satisfies never;
  }
}

export class RatePool {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #rules: PoolRules;
  #state = initialPool;

  constructor({ messagesPerSecond, maxCallers }: ResolvedGrant) {
    // What callers keep to as well, with room for what they need not count.
    this.#perSecond = messagesPerSecond * 2;
    this.#burst = messagesPerSecond * 2 + 1_000;
    // With less than a quarter a caller in earnest would be cut off while it still greets, over and over.
    this.#rules = { max: maxCallers, fullWithinMs: (this.#burst * 0.75 / this.#perSecond) * 1_000 };
  }

  /** Connections that hold a bucket. */
  get held(): number {
    return this.#state.held;
  }

  /** The fullest; undefined when all are held, or those that are not are nearly empty. */
  take(now: number): RateBucket | undefined {
    const { state, fullAt } = stepPool(this.#state, { kind: 'taken' }, now, this.#rules);
    this.#state = state;
    if (fullAt === undefined) return undefined;
    const bucket = new RateBucket(this.#perSecond, this.#burst, now);
    bucket.take(((fullAt - now) / 1_000) * this.#perSecond, now);
    return bucket;
  }

  giveBack(bucket: RateBucket, now: number): void {
    const fullAt = now + bucket.waitMs(this.#burst, now);
    this.#state = stepPool(this.#state, { kind: 'returned', fullAt }, now, this.#rules).state;
  }
}
