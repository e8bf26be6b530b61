/** What singletons say to each other between nodes: building envelopes, and reading them with every field checked. */
import { countOf, fail, flagOf, listOf, proseOf, textOf } from '../cluster/wire_checks.ts';
import { coreLimits as limits } from '../limits.ts';
import type { Address } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { Watermark } from './delivery_filter.ts';
import type { HandOverResult, Verdict } from './manager_state.ts';

export interface RequestMessage {
  readonly name: string;
  readonly nonce: string;
  readonly epoch: number;
}

export interface AnswerMessage {
  readonly name: string;
  readonly nonce: string;
  readonly epochSeen: number;
  readonly epochStarted: number;
  /** For `handed-over` the state is left out here; it follows from the chunks announced. */
  readonly verdict: Verdict;
  /** How long ago the instance ended, by the answering node's clock. */
  readonly endedAgoMs: number;
  /** -1: no state. Otherwise its size and the number of chunks that were sent before this answer. */
  readonly stateBytes: number;
  readonly checksum: number;
}

export interface ChunkMessage {
  readonly name: string;
  readonly nonce: string;
  readonly index: number;
  readonly bytes: Uint8Array;
}

export interface OpenMessage {
  readonly name: string;
  readonly base: number;
  readonly next: number;
  readonly lastSentEpoch: number;
  readonly repeat: boolean;
}

export interface OpenedMessage {
  readonly name: string;
  readonly epoch: number;
  readonly plannedSince: number;
  readonly verdict: 'continued' | 'crash' | 'announced' | 'forgotten';
  readonly next: number;
  readonly prefix: number;
  readonly exceptions: readonly number[];
}

export interface AcknowledgeMessage {
  readonly name: string;
  readonly prefix: number;
  readonly others: readonly number[];
}

export interface RefuseMessage {
  readonly name: string;
  readonly epoch: number;
  readonly why: 'not-host' | 'epoch' | 'gap';
  readonly hint: Address | undefined;
}

/** Everything singletons say to each other. */
export const messageCodes = [
  codes.handOverRequest,
  codes.handOverAnswer,
  codes.handOverWithdraw,
  codes.relay,
  codes.stateChunk,
  codes.stateMore,
  codes.streamOpen,
  codes.streamOpened,
  codes.deliver,
  codes.acknowledge,
  codes.refuse,
];

/** To be answered, or passed on, for names never heard of too. */
export const questionCodes: ReadonlySet<number> = new Set([codes.handOverRequest, codes.relay, codes.streamOpen]);

const verdictKinds = ['not-hosting', 'stopping', 'handed-over', 'refused'] as const;
const openedVerdicts = ['continued', 'crash', 'announced', 'forgotten'] as const;
const refusals = ['not-host', 'epoch', 'gap'] as const;
const nonceChars = 128;

export function requestEnvelope(message: RequestMessage): Envelope {
  return [codes.handOverRequest, message.name, message.nonce, message.epoch];
}

export function readRequest(envelope: Envelope): RequestMessage {
  return {
    name: nameOf(envelope[1]),
    nonce: textOf(envelope[2], nonceChars, 'nonce'),
    epoch: countOf(envelope[3], 'epoch'),
  };
}

export function withdrawEnvelope(name: string, nonce: string): Envelope {
  return [codes.handOverWithdraw, name, nonce];
}

export function readWithdraw(envelope: Envelope): { readonly name: string; readonly nonce: string } {
  return { name: nameOf(envelope[1]), nonce: textOf(envelope[2], nonceChars, 'nonce') };
}

export function answerEnvelope(message: AnswerMessage): Envelope {
  const { verdict } = message;
  const result = verdict.kind === 'handed-over'
    ? [
      verdict.result.epoch,
      verdict.result.plannedSince,
      verdict.result.from,
      verdict.result.watermarks.map((mark) => [mark.stream, mark.prefix, mark.exceptions]),
      verdict.result.offeredTo,
      verdict.result.givenUp,
    ]
    : verdict.kind === 'refused'
    ? verdict.why
    : null;
  return [
    codes.handOverAnswer,
    message.name,
    message.nonce,
    message.epochSeen,
    message.epochStarted,
    verdictKinds.indexOf(verdict.kind),
    result,
    message.endedAgoMs,
    message.stateBytes,
    message.checksum,
  ];
}

export function readAnswer(envelope: Envelope, now: number): AnswerMessage {
  const kind = verdictKinds[countOf(envelope[5], 'verdict')];
  const endedAgoMs = countOf(envelope[7], 'ended ago');
  const stateBytes = envelope[8];
  if (!Number.isSafeInteger(stateBytes) || (stateBytes as number) < -1) fail('state bytes', stateBytes, 'a size or -1');
  return {
    name: nameOf(envelope[1]),
    nonce: textOf(envelope[2], nonceChars, 'nonce'),
    epochSeen: countOf(envelope[3], 'epoch seen'),
    epochStarted: countOf(envelope[4], 'epoch started'),
    verdict: readVerdict(kind, envelope[6], now - endedAgoMs),
    endedAgoMs,
    stateBytes: stateBytes as number,
    checksum: countOf(envelope[9], 'checksum'),
  };
}

function readVerdict(kind: (typeof verdictKinds)[number] | undefined, body: unknown, endedAt: number): Verdict {
  switch (kind) {
    case 'not-hosting':
    case 'stopping':
      return { kind };
    case 'refused':
      return { kind, why: proseOf(body, 512, 'reason') };
    case 'handed-over':
      return { kind, result: readResult(body, endedAt) };
    case undefined:
      return fail('verdict', kind, 'a known verdict');
    default:
      return kind satisfies never;
  }
}

function readResult(body: unknown, endedAt: number): HandOverResult {
  const fields = listOf(body, 6, 'result');
  const epoch = countOf(fields[0], 'epoch');
  const plannedSince = countOf(fields[1], 'planned since');
  if (plannedSince > epoch) fail('planned since', plannedSince, `at most the epoch ${epoch}`);
  const watermarks = listOf(fields[3], limits.streams, 'watermarks').map(readWatermark);
  const from = textOf(fields[2], limits.hostChars + 6, 'from');
  const offeredTo = noncesOf(fields[4], 'offered to');
  const givenUp = noncesOf(fields[5], 'given up');
  return { epoch, plannedSince, from, watermarks, state: null, endedAt, offeredTo, givenUp };
}

function noncesOf(value: unknown, field: string): readonly string[] {
  return listOf(value, limits.members, field).map((nonce) => textOf(nonce, nonceChars, field));
}

function readWatermark(value: unknown): Watermark {
  const fields = listOf(value, 3, 'watermark');
  return {
    stream: textOf(fields[0], 128, 'stream'),
    prefix: countOf(fields[1], 'prefix'),
    exceptions: sequenceNumbers(fields[2], 'exceptions'),
  };
}

export function chunkEnvelope(message: ChunkMessage): Envelope {
  return [codes.stateChunk, message.name, message.nonce, message.index, message.bytes];
}

export function readChunk(envelope: Envelope): ChunkMessage {
  const bytes = envelope[4];
  if (!(bytes instanceof Uint8Array)) return fail('chunk', bytes, 'bytes');
  return {
    name: nameOf(envelope[1]),
    nonce: textOf(envelope[2], nonceChars, 'nonce'),
    index: countOf(envelope[3], 'index'),
    bytes,
  };
}

export function moreEnvelope(name: string, nonce: string, received: number): Envelope {
  return [codes.stateMore, name, nonce, received];
}

export function readMore(envelope: Envelope): { readonly nonce: string; readonly received: number } {
  return { nonce: textOf(envelope[2], nonceChars, 'nonce'), received: countOf(envelope[3], 'received') };
}

export function openEnvelope(message: OpenMessage): Envelope {
  return [codes.streamOpen, message.name, message.base, message.next, message.lastSentEpoch, message.repeat];
}

export function readOpen(envelope: Envelope): OpenMessage {
  const base = countOf(envelope[2], 'base');
  const next = countOf(envelope[3], 'next');
  if (base < 1 || next < base || next - base > limits.streamWindow) {
    fail('next', next, `within the window from ${base}`);
  }
  return {
    name: nameOf(envelope[1]),
    base,
    next,
    lastSentEpoch: countOf(envelope[4], 'last epoch'),
    repeat: flagOf(envelope[5], 'repeat'),
  };
}

export function openedEnvelope(message: OpenedMessage): Envelope {
  const { name, epoch, plannedSince, verdict, next, prefix, exceptions } = message;
  return [codes.streamOpened, name, epoch, plannedSince, openedVerdicts.indexOf(verdict), next, prefix, exceptions];
}

export function readOpened(envelope: Envelope): OpenedMessage {
  const verdict = openedVerdicts[countOf(envelope[4], 'verdict')] ?? fail('verdict', envelope[4], 'a known verdict');
  return {
    name: nameOf(envelope[1]),
    epoch: countOf(envelope[2], 'epoch'),
    plannedSince: countOf(envelope[3], 'planned since'),
    verdict,
    next: countOf(envelope[5], 'next'),
    prefix: countOf(envelope[6], 'prefix'),
    exceptions: sequenceNumbers(envelope[7], 'exceptions'),
  };
}

export function deliverEnvelope(
  name: string,
  epoch: number,
  seq: number,
  repeat: boolean,
  sender: unknown,
  message: unknown,
): Envelope {
  return [codes.deliver, name, epoch, seq, repeat ? 1 : 0, sender ?? null, message];
}

export function acknowledgeEnvelope(message: AcknowledgeMessage): Envelope {
  return [codes.acknowledge, message.name, message.prefix, message.others];
}

export function readAcknowledge(envelope: Envelope): AcknowledgeMessage {
  return {
    name: nameOf(envelope[1]),
    prefix: countOf(envelope[2], 'prefix'),
    others: sequenceNumbers(envelope[3], 'others'),
  };
}

export function refuseEnvelope(message: RefuseMessage): Envelope {
  return [codes.refuse, message.name, message.epoch, refusals.indexOf(message.why), message.hint ?? null];
}

export function readRefuse(envelope: Envelope): RefuseMessage {
  const hint = envelope[4];
  return {
    name: nameOf(envelope[1]),
    epoch: countOf(envelope[2], 'epoch'),
    why: refusals[countOf(envelope[3], 'reason')] ?? fail('reason', envelope[3], 'a known reason'),
    hint: hint === null ? undefined : textOf(hint, limits.hostChars + 6, 'hint'),
  };
}

function nameOf(value: unknown): string {
  return textOf(value, limits.typeNameChars, 'singleton name');
}

function sequenceNumbers(value: unknown, field: string): readonly number[] {
  const list = listOf(value, limits.streamWindow, field);
  for (const seq of list) countOf(seq, field);
  return list as readonly number[];
}
