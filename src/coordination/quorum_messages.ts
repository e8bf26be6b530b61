/** Questions to the voters of a quorum lease and their answers, as envelopes. */
import { limits } from '../limits.ts';
import { codes } from '../wire/codes.ts';

export type Envelope = readonly [code: number, ...fields: unknown[]];

/** The owner is whoever asks, by the identity of the link; no message can name another. */
export type Question =
  | { readonly kind: 'grant'; readonly name: string; readonly tenure: number; readonly ttlMs: number }
  | {
    readonly kind: 'seal' | 'renew';
    readonly name: string;
    readonly tenure: number;
    readonly ttlMs: number;
    readonly token: number;
  }
  | { readonly kind: 'release'; readonly name: string; readonly tenure: number }
  | { readonly kind: 'learn' };

export type Answer =
  | {
    readonly kind: 'granted';
    /** The largest token this voter has heard of, for whatever name. */
    readonly floor: number;
    /** The largest that was sealed here for this name … */
    readonly sealed: number;
    /** … except for those up to here, which it may have forgotten. */
    readonly forgotten: number;
  }
  | { readonly kind: 'held'; readonly by: string; readonly expiresInMs: number }
  | { readonly kind: 'refused'; readonly why: string; readonly retryInMs: number }
  | { readonly kind: 'released' }
  | { readonly kind: 'learnt'; readonly knows: boolean; readonly floor: number };

const whyChars = 200;
const questionKinds = ['grant', 'seal', 'renew', 'release', 'learn'] as const;
const answerKinds = ['granted', 'held', 'refused', 'released', 'learnt'] as const;

/** [leaseAsk, request, kind, name, tenure, ttlMs, token], terms in whole milliseconds: a voter may wait longer, never shorter */
export function questionEnvelope(request: number, question: Question): Envelope {
  const head: Envelope = [codes.leaseAsk, request, questionKinds.indexOf(question.kind)];
  switch (question.kind) {
    case 'grant':
      return [...head, question.name, question.tenure, Math.ceil(question.ttlMs)];
    case 'seal':
    case 'renew':
      return [...head, question.name, question.tenure, Math.ceil(question.ttlMs), question.token];
    case 'release':
      return [...head, question.name, question.tenure];
    case 'learn':
      return head;
    default:
      return question satisfies never;
  }
}

/** Undefined when it is not well-formed. */
export function readQuestion(envelope: Envelope): { request: number; question: Question } | undefined {
  const [, request, code, name, tenure, ttlMs, token] = envelope;
  const kind = questionKinds[code as number];
  if (!isCount(request) || kind === undefined) return undefined;
  if (kind === 'learn') return { request, question: { kind } };
  if (!isText(name, limits.typeNameChars) || !isCount(tenure)) return undefined;
  if (kind === 'release') return { request, question: { kind, name, tenure } };
  if (!isCount(ttlMs) || ttlMs < 1) return undefined;
  if (kind === 'grant') return { request, question: { kind, name, tenure, ttlMs } };
  return isCount(token) ? { request, question: { kind, name, tenure, ttlMs, token } } : undefined;
}

/** [leaseAnswer, request, kind, …] */
export function answerEnvelope(request: number, answer: Answer): Envelope {
  const head: Envelope = [codes.leaseAnswer, request, answerKinds.indexOf(answer.kind)];
  switch (answer.kind) {
    case 'granted':
      return [...head, answer.floor, answer.sealed, answer.forgotten];
    case 'held':
      return [...head, answer.by, Math.max(0, Math.ceil(answer.expiresInMs))];
    case 'refused':
      return [...head, answer.why.slice(0, whyChars), Math.max(0, Math.ceil(answer.retryInMs))];
    case 'released':
      return head;
    case 'learnt':
      return [...head, answer.knows, answer.floor];
    default:
      return answer satisfies never;
  }
}

/** Undefined when it is not well-formed. */
export function readAnswer(envelope: Envelope): { request: number; answer: Answer } | undefined {
  const [, request, code, a, b, c] = envelope;
  const kind = answerKinds[code as number];
  if (!isCount(request) || kind === undefined) return undefined;
  const answer = answerOf(kind, a, b, c);
  return answer && { request, answer };
}

function answerOf(kind: Answer['kind'], a: unknown, b: unknown, c: unknown): Answer | undefined {
  switch (kind) {
    case 'granted':
      return isCount(a) && isCount(b) && isCount(c) ? { kind, floor: a, sealed: b, forgotten: c } : undefined;
    case 'held':
      return isText(a, limits.leaseOwnerChars) && isCount(b) ? { kind, by: a, expiresInMs: b } : undefined;
    case 'refused':
      return isText(a, whyChars) && isCount(b) ? { kind, why: a, retryInMs: b } : undefined;
    case 'released':
      return { kind };
    case 'learnt':
      return typeof a === 'boolean' && isCount(b) ? { kind, knows: a, floor: b } : undefined;
    default:
      return kind satisfies never;
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isText(value: unknown, maxChars: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= maxChars;
}
