/** One node's part in the quorum leases of its cluster: its voter, if it is one, and its questions to all voters. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { checkOptions, OptionsError, type Rules, rules } from '../actor/options.ts';
import { limits } from '../limits.ts';
import { codes } from '../wire/codes.ts';
import {
  type Answer,
  answerEnvelope,
  type Envelope,
  type Question,
  questionEnvelope,
  readAnswer,
  readQuestion,
} from './quorum_messages.ts';
import type { Poll } from './quorum_poll.ts';
import { Voter } from './quorum_voter.ts';

/** What it needs of a cluster node. */
export interface ArbiterNode {
  readonly environment: Environment;
  readonly address: string;
  readonly uid: string;
  /** Messages come from members that are neither down nor removed. */
  onMessage(
    code: number,
    handler: (peer: { readonly address: string; readonly uid: string }, envelope: Envelope) => void,
  ): Cancel;
  sendSystem(address: string, envelope: Envelope): void;
}

export interface ArbiterOptions {
  /** Addresses of all voters, the same on every node. */
  readonly voters: readonly string[];
  /** Longest term, the same on every node. Default 30 000 ms. A voter that restarts votes again after that time. */
  readonly maxTtlMs?: number;
  readonly driftBound?: number;
}

const family = 'QuorumArbiter';
const optionRules: Rules<ArbiterOptions> = {
  voters: rules.listOf(rules.text(limits.hostChars + 8), limits.leaseVoters),
  maxTtlMs: rules.durationMs(100),
  driftBound: rules.number(0, 0.1),
};

export const defaultMaxTtlMs = 30_000;
const learnEveryMs = 500;
const resendMs = 200;

export class QuorumArbiter {
  readonly voters: readonly string[];
  readonly maxTtlMs: number;
  readonly owner: string;
  readonly environment: Environment;
  readonly voter: Voter | undefined;
  /** Messages that were not well-formed. */
  malformed = 0;
  readonly #node: ArbiterNode;
  readonly #polls = new Map<number, { readonly poll: Poll; settle(): void }>();
  readonly #cancels: Cancel[];
  #learning: Cancel | undefined;
  #requests = 0;
  #tenures = 0;
  #closed = false;

  /** @throws OptionsError */
  constructor(node: ArbiterNode, options: ArbiterOptions) {
    checkOptions(family, options, optionRules);
    const { driftBound = 2e-4 } = options;
    // Terms travel in whole milliseconds.
    const maxTtlMs = Math.ceil(options.maxTtlMs ?? defaultMaxTtlMs);
    this.voters = [...new Set(options.voters)];
    if (this.voters.length === 0) {
      throw new OptionsError(family, 'voters', options.voters, 'must name at least one voter');
    }
    this.#node = node;
    this.maxTtlMs = maxTtlMs;
    this.environment = node.environment;
    this.owner = `${node.address}#${node.uid}`;
    if (this.voters.includes(node.address)) {
      this.voter = new Voter({ voters: this.voters.length, maxTtlMs, driftBound }, this.environment.clock.now());
      this.voter.conclude(this.environment.clock.wall());
    }
    this.#cancels = [
      node.onMessage(codes.leaseAsk, (peer, envelope) => this.#onQuestion(peer, envelope)),
      node.onMessage(codes.leaseAnswer, (peer, envelope) => this.#onAnswer(peer.address, envelope)),
    ];
    this.#learn();
  }

  /** Names one acquire; grows. */
  nextTenure(): number {
    this.#tenures += 1;
    return this.#tenures;
  }

  close(): void {
    this.#closed = true;
    this.#learning?.();
    for (const cancel of this.#cancels) cancel();
    for (const { settle } of [...this.#polls.values()]) settle();
  }

  /**
   * Asks voters, again where no answer comes, until the poll is decided or `signal` fires. Every question may arrive twice
   * or late.
   */
  ask(poll: Poll, question: Question, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted || this.#closed) return resolve();
      const request = this.#requests += 1;
      let cancel: Cancel = () => {};
      const settle = (): void => {
        cancel();
        signal.removeEventListener('abort', settle);
        this.#polls.delete(request);
        resolve();
      };
      const send = (): void => {
        cancel = this.environment.timers.set(resendMs, send);
        for (const voter of poll.silent) this.#send(voter, request, question);
      };
      this.#polls.set(request, { poll, settle });
      signal.addEventListener('abort', settle);
      send();
    });
  }

  /** Asks without waiting for answers. */
  tell(question: Question): void {
    for (const voter of this.voters) this.#send(voter, this.#requests += 1, question);
  }

  #send(voter: string, request: number, question: Question): void {
    if (voter !== this.#node.address) return this.#node.sendSystem(voter, questionEnvelope(request, question));
    const answer = this.voter?.answer(this.owner, question, this.environment.clock.now());
    // In a turn of its own, like every other answer.
    if (answer) this.environment.turns.schedule(() => this.#count(voter, request, answer));
  }

  #onQuestion(peer: { readonly address: string; readonly uid: string }, envelope: Envelope): void {
    const read = readQuestion(envelope);
    if (read === undefined) return void (this.malformed += 1);
    const answer = this.voter?.answer(`${peer.address}#${peer.uid}`, read.question, this.environment.clock.now());
    if (answer) this.#node.sendSystem(peer.address, answerEnvelope(read.request, answer));
  }

  #onAnswer(voter: string, envelope: Envelope): void {
    const read = readAnswer(envelope);
    if (read === undefined) return void (this.malformed += 1);
    this.#count(voter, read.request, read.answer);
  }

  #count(voter: string, request: number, answer: Answer): void {
    if (answer.kind === 'learnt') {
      if (this.voters.includes(voter)) this.voter?.learn(voter, answer, this.environment.clock.wall());
      return;
    }
    const asked = this.#polls.get(request);
    if (asked === undefined) return;
    asked.poll.add(voter, answer);
    if (asked.poll.won || asked.poll.lost) asked.settle();
  }

  #learn(): void {
    if (this.#closed || this.voter?.learns(this.environment.clock.now()) !== true) return;
    for (const voter of this.voters) {
      if (voter !== this.#node.address) this.#send(voter, this.#requests += 1, { kind: 'learn' });
    }
    this.#learning = this.environment.timers.set(learnEveryMs, () => this.#learn());
  }
}
