/**
 * One voter of a quorum lease: an ordinary lease server without a disk, which alone proves nothing; a majority of voters
 * does. See `QuorumLease` for the whole. Answers depend on the questions and on the monotonic time that comes with them.
 */
import { limits } from '../limits.ts';
import type { Answer, Question } from './quorum_messages.ts';

export interface VoterConfig {
  /** How many voters there are, this one included. */
  readonly voters: number;
  /** No term is longer. */
  readonly maxTtlMs: number;
  readonly driftBound: number;
}

interface Grant {
  readonly owner: string;
  readonly tenure: number;
  readonly expiresAt: number;
  readonly released: boolean;
  /** The largest token sealed here for this name. */
  readonly sealed: number;
  /** It is this tenure's. */
  readonly own: boolean;
}

/** The smallest number that is more than half. */
export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

export class Voter {
  readonly #config: VoterConfig;
  readonly #waitUntil: number;
  readonly #grants = new Map<string, Grant>();
  /** What other voters say of themselves, until this one has learnt enough. */
  readonly #others = new Map<string, boolean>();
  #knows = false;
  #floor = 0;
  #forgotten = 0;
  /** Questions refused because `limits.leaseNames` names are in use. */
  refusedNames = 0;

  /**
   * Begins without memory: whatever an earlier incarnation granted runs out before this one grants anything, on any clock
   * within the drift bound.
   */
  constructor(config: VoterConfig, now: number) {
    this.#config = config;
    this.#waitUntil = now + config.maxTtlMs * (1 + 2 * config.driftBound);
  }

  /** Has it learnt the largest token, as far as anybody can know it? */
  get knows(): boolean {
    return this.#knows;
  }

  /** Until it votes, others may yet accept tokens that its predecessor had accepted as well. */
  learns(now: number): boolean {
    return !this.#knows || now < this.#waitUntil;
  }

  grants(now: number): boolean {
    return this.#knows && now >= this.#waitUntil;
  }

  /** The answer of another voter to `learn`; `wall` is this node's wall clock. */
  learn(voter: string, answer: Extract<Answer, { kind: 'learnt' }>, wall: number): void {
    this.#floor = Math.max(this.#floor, answer.floor);
    if (this.#knows) return;
    this.#others.set(voter, answer.knows);
    this.conclude(wall);
  }

  /**
   * Enough is learnt from so many voters with a memory that every majority which ever accepted a token has one of them in
   * it beside this voter. Where a majority has lost its memory, the others' cannot be waited for: what is not remembered by
   * those that answer is lost, and tokens go on from the wall clock.
   */
  conclude(wall: number): void {
    if (this.#knows) return;
    const { voters } = this.#config;
    const knowing = [...this.#others.values()].filter((knows) => knows).length;
    const forgetful = this.#others.size - knowing + 1;
    const enough = knowing >= voters - majorityOf(voters) + 1 && knowing > 0;
    if (!enough && forgetful < majorityOf(voters)) return;
    this.#knows = true;
    this.#forgotten = enough ? this.#floor : Math.max(this.#floor, Math.floor(wall));
  }

  answer(owner: string, question: Question, now: number): Answer {
    switch (question.kind) {
      case 'learn':
        return { kind: 'learnt', knows: this.#knows, floor: this.#floor };
      case 'release':
        return this.#release(owner, question.name, question.tenure);
      case 'grant':
      case 'seal':
      case 'renew':
        return this.#vote(owner, question, now);
      default:
        return question satisfies never;
    }
  }

  #release(owner: string, name: string, tenure: number): Answer {
    const grant = this.#grants.get(name);
    // A later tenure of the same owner is not meant.
    if (grant?.owner === owner && tenure >= grant.tenure) {
      this.#grants.set(name, { ...grant, tenure, released: true });
    }
    return { kind: 'released' };
  }

  #vote(owner: string, question: Extract<Question, { ttlMs: number }>, now: number): Answer {
    const { name, tenure, ttlMs } = question;
    if (!this.grants(now)) {
      const retryInMs = Math.max(50, this.#waitUntil - now);
      return { kind: 'refused', why: 'this voter has started a short while ago and does not vote yet', retryInMs };
    }
    if (ttlMs > this.#config.maxTtlMs) {
      return { kind: 'refused', why: `no term is longer than ${this.#config.maxTtlMs} ms`, retryInMs: ttlMs };
    }
    const grant = this.#grants.get(name);
    const taken = grant !== undefined && !grant.released && now < grant.expiresAt;
    if (taken && grant.owner !== owner) return { kind: 'held', by: grant.owner, expiresInMs: grant.expiresAt - now };
    const stale = grant?.owner === owner && (tenure < grant.tenure || (tenure === grant.tenure && grant.released));
    if (stale) return { kind: 'refused', why: 'that tenure is over', retryInMs: 0 };
    const refusal = this.#refuses(question, grant, taken);
    if (refusal !== undefined) return { kind: 'refused', why: refusal, retryInMs: 0 };
    if (grant === undefined && !this.#makeRoom(now)) {
      this.refusedNames += 1;
      return { kind: 'refused', why: `${limits.leaseNames} names are in use`, retryInMs: ttlMs };
    }
    const token = question.kind === 'grant' ? 0 : question.token;
    const same = grant?.owner === owner && grant.tenure === tenure;
    this.#floor = Math.max(this.#floor, token);
    this.#grants.set(name, {
      owner,
      tenure,
      expiresAt: now + ttlMs,
      released: false,
      sealed: Math.max(grant?.sealed ?? 0, token),
      own: token > 0 || (same && grant.own),
    });
    return { kind: 'granted', floor: this.#floor, sealed: grant?.sealed ?? 0, forgotten: this.#forgotten };
  }

  #refuses(question: Question, grant: Grant | undefined, taken: boolean): string | undefined {
    switch (question.kind) {
      case 'seal':
        // Only on top of its own grant, unbroken: that is what makes tokens grow.
        if (!taken || grant?.tenure !== question.tenure) return 'the grant it is for has ended';
        if (question.token === grant.sealed && grant.own) return undefined;
        return question.token > grant.sealed ? undefined : 'that token is taken';
      case 'renew':
        return (grant?.sealed ?? 0) <= question.token ? undefined : 'another tenure has followed';
      case 'grant':
      case 'release':
      case 'learn':
        return undefined;
      default:
        return question satisfies never;
    }
  }

  /** Names that nobody holds are forgotten when there are too many; that tokens were sealed for them is not. */
  #makeRoom(now: number): boolean {
    if (this.#grants.size < limits.leaseNames) return true;
    for (const [name, grant] of this.#grants) {
      if (!grant.released && now < grant.expiresAt) continue;
      this.#forgotten = Math.max(this.#forgotten, grant.sealed);
      this.#grants.delete(name);
      return true;
    }
    return false;
  }
}
