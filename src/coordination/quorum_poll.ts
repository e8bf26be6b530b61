/** Counting the answers of voters to one question. Pure. */
import type { Answer } from './quorum_messages.ts';
import { majorityOf } from './quorum_voter.ts';

export class Poll {
  readonly answers: Map<string, Answer> = new Map();
  readonly #asked: readonly string[];
  readonly #needed: number;
  readonly #good: Answer['kind'];

  /** @param voters how many there are, whether asked or not */
  constructor(asked: readonly string[], voters: number, good: 'granted' | 'released') {
    this.#asked = asked;
    this.#needed = majorityOf(voters);
    this.#good = good;
  }

  /** The first answer of each counts. */
  add(voter: string, answer: Answer): void {
    if (this.#asked.includes(voter) && !this.answers.has(voter)) this.answers.set(voter, answer);
  }

  get silent(): readonly string[] {
    return this.#asked.filter((voter) => !this.answers.has(voter));
  }

  get won(): boolean {
    return this.#count() >= this.#needed;
  }

  /** Whatever the others say, a majority cannot be had any more. */
  get lost(): boolean {
    return this.#count() + this.silent.length < this.#needed;
  }

  #count(): number {
    return [...this.answers.values()].filter(({ kind }) => kind === this.#good).length;
  }

  of<K extends Answer['kind']>(kind: K): Extract<Answer, { kind: K }>[] {
    return [...this.answers.values()].filter((answer): answer is Extract<Answer, { kind: K }> => answer.kind === kind);
  }
}

/** Who has it, when a majority could be free, and whether nobody has a majority. */
export function describeHeld(
  poll: Poll,
  voters: number,
): { by: string | undefined; expiresInMs: number; split: boolean } {
  const held = poll.of('held');
  const counts = new Map<string, number>();
  for (const { by } of held) counts.set(by, (counts.get(by) ?? 0) + 1);
  const [leading] = [...counts].sort(([, a], [, b]) => b - a);
  const waits = [
    ...poll.of('granted').map(() => 0),
    ...held.map(({ expiresInMs }) => expiresInMs),
    ...poll.of('refused').map(({ retryInMs }) => retryInMs),
  ].sort((a, b) => a - b);
  const expiresInMs = waits[majorityOf(voters) - 1] ?? waits.at(-1) ?? 0;
  // Those that were silent may be voting for the leading one.
  const possible = (leading?.[1] ?? 0) + poll.silent.length;
  return { by: leading?.[0], expiresInMs, split: possible < majorityOf(voters) };
}

/**
 * The token for a tenure that a majority has granted: above every one sealed before, since one of these voters has heard of
 * it; and the one right before, where the voters' memories reach back to it. What voters have forgotten was at most their
 * wall clocks, so one clock that is slow does not make tokens go back. What none of them knows any more, since most have
 * restarted, the one that asks may know: it is above `above` too.
 */
export function tokenFor(
  grants: readonly Extract<Answer, { kind: 'granted' }>[],
  wall: number,
  above = 0,
): { token: number; previous: number | undefined } {
  const token = Math.max(
    Math.floor(wall),
    above + 1,
    ...grants.map(({ floor, forgotten }) => Math.max(floor, forgotten) + 1),
  );
  const sealed = Math.max(0, ...grants.map((grant) => grant.sealed));
  const forgotten = Math.max(0, ...grants.map((grant) => grant.forgotten));
  return { token, previous: sealed > forgotten ? sealed : undefined };
}
