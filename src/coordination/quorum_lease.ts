import { OptionsError } from '../actor/options.ts';
import { type LeaseContext, type LeaseFactory, type LeaseSettings, resolveLease } from './lease.ts';
import type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from './lease_store.ts';
import { QuorumArbiter } from './quorum_arbiter.ts';
import { describeHeld, Poll, tokenFor } from './quorum_poll.ts';
import { StoreLease } from './store_lease.ts';

const family = 'QuorumLease';
const renewalFloorMs = 100;
/** Two that voted for each other's rival try again after a random part of this. */
const splitRetryMs = 200;

/**
 * The voters as a backend. To acquire: ask all for a grant; with a majority, choose a token above all that these voters
 * know of and have it sealed by a majority of *the same* voters, each of which still must be on this tenure's grant.
 */
export class QuorumLeaseStore implements LeaseStore {
  readonly #arbiter: QuorumArbiter;
  /** Of the last acquire. */
  #tenure = 0;

  constructor(arbiter: QuorumArbiter) {
    this.#arbiter = arbiter;
  }

  async acquire({ name, ttlMs, signal, above = 0 }: StoreRequest): Promise<StoreAnswer> {
    const arbiter = this.#arbiter;
    const { voters, environment } = arbiter;
    const tenure = this.#tenure = arbiter.nextTenure();
    const grants = new Poll(voters, voters.length, 'granted');
    await arbiter.ask(grants, { kind: 'grant', name, tenure, ttlMs }, signal);
    if (!grants.won) return this.#notGranted(name, tenure, grants);
    const granted = [...grants.answers].filter(([, answer]) => answer.kind === 'granted').map(([voter]) => voter);
    const { token, previous } = tokenFor(grants.of('granted'), environment.clock.wall(), above);
    const seals = new Poll(granted, voters.length, 'granted');
    await arbiter.ask(seals, { kind: 'seal', name, tenure, ttlMs, token }, signal);
    if (!seals.won) return this.#notGranted(name, tenure, seals);
    return { kind: 'granted', token, ...(previous === undefined ? {} : { previous }) };
  }

  /** What some have granted is of no use without the others. */
  #notGranted(name: string, tenure: number, poll: Poll): StoreAnswer {
    const { voters, environment } = this.#arbiter;
    this.#arbiter.tell({ kind: 'release', name, tenure });
    const { by, expiresInMs, split } = describeHeld(poll, voters.length);
    if (by === undefined) {
      const [refusal] = poll.of('refused');
      const missing = poll.silent.length === 0 ? '' : `; no answer from ${poll.silent.join(', ')}`;
      const why = `no majority of the voters: ${refusal?.why ?? 'too few have answered'}${missing}`;
      return { kind: 'error', why, ...(refusal ? { retryInMs: expiresInMs } : {}) };
    }
    if (!split) return { kind: 'held', by, expiresInMs };
    return { kind: 'held', expiresInMs: 20 + splitRetryMs * environment.random.next() };
  }

  async renew({ name, ttlMs, token, signal }: StoreRequest & { readonly token: number }): Promise<StoreAnswer> {
    const { voters } = this.#arbiter;
    const poll = new Poll(voters, voters.length, 'granted');
    await this.#arbiter.ask(poll, { kind: 'renew', name, tenure: this.#tenure, ttlMs, token }, signal);
    if (poll.won) return { kind: 'granted', token };
    const { by, split } = describeHeld(poll, voters.length);
    if (poll.lost && by !== undefined && !split) return { kind: 'held', by };
    const [refusal] = poll.of('refused');
    return {
      kind: 'error',
      why: `no majority of the voters has renewed it: ${refusal?.why ?? 'too few have answered'}`,
    };
  }

  async release({ name, signal }: StoreRequest): Promise<ReleaseAnswer> {
    const { voters } = this.#arbiter;
    const poll = new Poll(voters, voters.length, 'released');
    await this.#arbiter.ask(poll, { kind: 'release', name, tenure: this.#tenure }, signal);
    return poll.won ? { kind: 'released' } : { kind: 'error', why: 'no majority of the voters has answered' };
  }
}

/**
 * A lease with the cluster itself as the arbiter: no other system is needed. A configured set of voters, the same on every
 * node and part of what joining nodes must agree on, each grants a lease for a bounded time, in memory only; whoever has the
 * grants of more than half of them holds it.
 *
 * Sources: leases as bounded promises, and their arithmetic under drifting clocks, from Gray and Cheriton ("Leases", 1989);
 * majorities from Gifford ("Weighted voting for replicated data", 1979); voters that need no disk because they wait out
 * the longest term after a restart from PaxosLease (Trencseni, Gazso and Reinhardt, 2012). There is no ballot: a voter
 * has one owner at a time, rivals that split the votes give them back and try again after a random time.
 *
 * Why never two hold it: two majorities have a voter in common, that voter had one owner at a time, and an owner counts its
 * term from before it asked and shorter by the drift bound, while the voter counts from when it was asked.
 * Why tokens grow: a token is sealed only by voters whose answers it was chosen by, each under an unbroken grant; so the
 * voter in common with any earlier sealing majority had told of the earlier token.
 *
 * Assumptions: no two monotonic clocks differ by more than the drift bound; where a machine is suspended, its wall clock
 * shows it; voters do not lie; the voter set does not change while leases are held. Messages may be lost, doubled, late and
 * out of order. With 2f + 1 voters f may be gone. A restarted voter votes again after the longest term, once enough others
 * have told it their tokens; after a restart of more than half of them, tokens go on from the wall clock, and nothing is
 * granted for the longest term.
 */
export class QuorumLease extends StoreLease {
  /** @throws OptionsError */
  constructor(arbiter: QuorumArbiter, settings: Omit<LeaseSettings, 'owner'>) {
    const config = resolveLease(family, { ...settings, owner: arbiter.owner }, renewalFloorMs);
    if (config.ttlMs > arbiter.maxTtlMs) {
      const rule = `must be at most the longest term that the voters grant (${arbiter.maxTtlMs})`;
      throw new OptionsError(family, 'ttlMs', config.ttlMs, rule);
    }
    super(new QuorumLeaseStore(arbiter), config, arbiter.environment);
  }

  /** For `StartSingletonOptions.lease`; the cluster's options name the voters. */
  static factory(settings: Omit<LeaseSettings, 'owner'>): LeaseFactory {
    resolveLease(family, { name: 'checked', ...settings, owner: 'checked' }, renewalFloorMs);
    return ({ name, driftBound, arbiter }: LeaseContext) => {
      if (!(arbiter instanceof QuorumArbiter)) {
        throw new OptionsError(
          'ClusterOptions',
          'leaseVoters',
          undefined,
          'must name the voters where a QuorumLease is used',
        );
      }
      return new QuorumLease(arbiter, { driftBound, ...settings, name: settings.name ?? name });
    };
  }
}
