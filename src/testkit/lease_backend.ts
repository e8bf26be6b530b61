/**
 * A lease backend outside of every node: one store in the world, reached over a network of its own, that answers late,
 * never, "unknown" or with a denial while a fault of that kind is in force. It keeps the contract of `LeaseStore` in spite
 * of all that: what was overtaken by a later request of the same owner has no effect.
 */
import { LeaseError } from '../coordination/lease.ts';
import type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from '../coordination/lease_store.ts';
import { Prng } from './prng.ts';
import type { SimProcess } from './sim_process.ts';
import type { World } from './sim_world.ts';

/**
 * `late`: seconds on the way there and back. `never`: the request or the answer is lost. `unknown`: an error, whether or not
 * it was carried out. `deny`: refused, whoever holds it.
 */
export type LeaseFaultKind = 'late' | 'never' | 'unknown' | 'deny';

export const leaseFaultKinds: readonly LeaseFaultKind[] = ['late', 'never', 'unknown', 'deny'];

interface LeaseRecord {
  owner: string | undefined;
  token: number;
  expiresAt: number;
}

/** A question as it arrives at the store; `order` grows with each one of its owner. */
interface Arrival {
  readonly kind: 'acquire' | 'renew' | 'release';
  readonly name: string;
  readonly owner: string;
  readonly order: number;
  readonly ttlMs: number;
  readonly token: number;
}

type Answer = StoreAnswer | ReleaseAnswer;

interface ActiveFault {
  readonly kind: LeaseFaultKind;
  /** Only requests of this node; undefined: of all. */
  readonly node: string | undefined;
  readonly until: number;
}

/** Delays of one leg in milliseconds: usual, and under the fault `late`. */
const legMs = [0.3, 25] as const;
const lateLegMs = [0, 6_000] as const;

export class LeaseBackend {
  readonly statistics = { leaseGrants: 0, leaseRefusals: 0, leaseAnswersLost: 0 };
  readonly #world: World;
  readonly #random: Prng;
  /** Of the store's own clock, relative to true time. */
  readonly #rate: number;
  readonly #records = new Map<string, LeaseRecord>();
  /** By name and owner: the order of the latest request that was carried out. */
  readonly #latest = new Map<string, number>();
  #faults: ActiveFault[] = [];

  constructor(world: World) {
    this.#world = world;
    this.#random = new Prng(`${world.seed}/leases`);
    this.#rate = 1 + this.#random.between(-1, 1) * world.options.driftPpm / 1e6;
  }

  fault(kind: LeaseFaultKind, node: string | undefined, forMs: number): void {
    this.#faults.push({ kind, node, until: this.#world.now + forMs });
  }

  endFaults(): void {
    this.#faults = [];
  }

  /** What one process sees of it. */
  client(process: SimProcess): LeaseStore {
    let order = 0;
    const ask = (kind: Arrival['kind'], request: StoreRequest & { readonly token?: number }): Promise<Answer> => {
      const { name, owner, ttlMs, token = 0 } = request;
      return this.#send(process, { kind, name, owner, ttlMs, token, order: order += 1 });
    };
    return {
      acquire: (request) => ask('acquire', request) as Promise<StoreAnswer>,
      renew: (request) => ask('renew', request) as Promise<StoreAnswer>,
      release: (request) => ask('release', request) as Promise<ReleaseAnswer>,
    };
  }

  #send(process: SimProcess, arrival: Arrival): Promise<Answer> {
    const fault = this.#faultFor(process.host.name);
    const random = this.#random;
    const [shortest, longest] = fault === 'late' ? lateLegMs : legMs;
    const leg = (): number => random.between(shortest, longest);
    const lost = fault === 'never' ? random.pick(['there', 'back']) : undefined;
    const carriedOut = lost !== 'there' && fault !== 'deny' && (fault !== 'unknown' || random.chance(0.5));
    const [there, back] = [leg(), leg()];
    if (lost !== undefined) this.statistics.leaseAnswersLost++;
    return new Promise((resolve, reject) => {
      this.#world.at(this.#world.now + there, () => {
        const done = carriedOut ? this.#carryOut(arrival) : undefined;
        if (lost !== undefined || (carriedOut && done === undefined)) return;
        this.#world.schedule(this.#world.now + back, process, 'io', () => {
          if (fault === 'unknown') return reject(new LeaseError('the backend does not know whether it was done'));
          resolve(done ?? refusal(arrival.kind));
        });
      });
    });
  }

  #faultFor(node: string): LeaseFaultKind | undefined {
    const { now } = this.#world;
    this.#faults = this.#faults.filter(({ until }) => until > now);
    return this.#faults.find((fault) => fault.node === undefined || fault.node === node)?.kind;
  }

  /** Undefined: overtaken, so that nobody waits for an answer. */
  #carryOut(arrival: Arrival): Answer | undefined {
    const key = `${arrival.name} ${arrival.owner}`;
    if (arrival.order < (this.#latest.get(key) ?? 0)) return undefined;
    this.#latest.set(key, arrival.order);
    const answer = this.#answer(arrival);
    this.#world.record('lease', '-', `${arrival.kind} ${arrival.name} by ${arrival.owner}: ${answer.kind}`);
    if (answer.kind === 'granted') this.statistics.leaseGrants++;
    else if (answer.kind === 'held') this.statistics.leaseRefusals++;
    return answer;
  }

  #answer({ kind, name, owner, ttlMs, token }: Arrival): Answer {
    const now = this.#world.now * this.#rate;
    const record = this.#records.get(name) ?? { owner: undefined, token: 0, expiresAt: -Infinity };
    this.#records.set(name, record);
    const held = record.owner !== undefined && now < record.expiresAt;
    switch (kind) {
      case 'acquire': {
        if (held && record.owner !== owner) return heldBy(record, now);
        const previous = record.token;
        Object.assign(record, { owner, token: previous + 1, expiresAt: now + ttlMs });
        return { kind: 'granted', token: record.token, previous };
      }
      case 'renew':
        if (record.owner !== owner || record.token !== token) return held ? heldBy(record, now) : { kind: 'held' };
        record.expiresAt = now + ttlMs;
        return { kind: 'granted', token };
      case 'release':
        if (record.owner === owner) record.owner = undefined;
        return { kind: 'released' };
      default:
        return kind satisfies never;
    }
  }
}

function heldBy({ owner = '', expiresAt }: LeaseRecord, now: number): StoreAnswer {
  return { kind: 'held', by: owner, expiresInMs: expiresAt - now };
}

function refusal(kind: Arrival['kind']): Answer {
  return kind === 'release' ? { kind: 'error', why: 'refused' } : { kind: 'held' };
}
