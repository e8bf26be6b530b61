/** What callers, their gateways and hosts say to each other: building envelopes, and reading them with every field checked. */
import { countOf, fail, flagOf, listOf, textOf, tupleOf } from '../cluster/wire_checks.ts';
import { coreLimits as limits } from '../limits.ts';
import { callerPrefix } from '../singleton/outside.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';

const uidChars = 128;
const receiverChars = 64;

/** Which caller, and which of its connections: a higher number is a later one. */
export interface CallerStamp {
  readonly id: string;
  readonly session: number;
}

export interface StreamStart {
  readonly name: string;
  readonly base: number;
  readonly next: number;
  readonly lastSentEpoch: number;
  readonly repeat: boolean;
}

/** A numbered message; `body` is encoded by the caller and decoded by the host, and by nobody in between. */
export interface Told {
  readonly name: string;
  readonly epoch: number;
  readonly seq: number;
  readonly repeat: boolean;
  /** Which of the caller's receivers answers go to. */
  readonly receiver: string | null;
  readonly body: Uint8Array;
}

export type FromCaller =
  | { readonly kind: 'hello'; readonly session: number }
  | { readonly kind: 'use'; readonly name: string }
  | { readonly kind: 'open'; readonly host: string; readonly start: StreamStart }
  | { readonly kind: 'told'; readonly host: string; readonly told: Told }
  | { readonly kind: 'bye' }
  | { readonly kind: 'ping' };

/** What its token lets a caller do, and how it is to behave. */
export interface Welcome {
  readonly clusterName: string;
  readonly grant: string;
  /** Undefined: all. */
  readonly singletons: readonly string[] | undefined;
  readonly tell: boolean;
  readonly ask: boolean;
  /** Messages per second. */
  readonly rate: number;
}

export type ToCaller =
  | { readonly kind: 'welcome'; readonly welcome: Welcome }
  /** `uid` of the host to be, if there is one. */
  | { readonly kind: 'host'; readonly name: string; readonly uid: string | undefined }
  | { readonly kind: 'answer'; readonly host: string; readonly envelope: Envelope }
  | { readonly kind: 'reply'; readonly receiver: string; readonly body: Uint8Array }
  | { readonly kind: 'pong' };

/** From a gateway to a host, on the system lane. */
export type HostStep =
  | { readonly kind: 'attach'; readonly name: string }
  | { readonly kind: 'open'; readonly start: StreamStart }
  | { readonly kind: 'end'; readonly name: string };

const steps = ['attach', 'open', 'end'] as const;

export function fromCallerEnvelope(message: FromCaller): Envelope {
  switch (message.kind) {
    case 'hello':
      return [codes.hello, message.session];
    case 'use':
      return [codes.use, message.name];
    case 'open':
      return [codes.open, message.host, ...startFields(message.start)];
    case 'told':
      return [codes.told, message.host, ...toldFields(message.told)];
    case 'bye':
      return [codes.bye];
    case 'ping':
      return [codes.ping];
    default:
      return message satisfies never;
  }
}

/** @throws WireError */
export function readFromCaller(envelope: Envelope): FromCaller {
  switch (envelope[0]) {
    case codes.hello:
      return { kind: 'hello', session: countOf(envelope[1], 'session') };
    case codes.use:
      return { kind: 'use', name: nameOf(envelope[1]) };
    case codes.open:
      return { kind: 'open', host: uidOf(envelope[1]), start: readStart(envelope.slice(2)) };
    case codes.told:
      return { kind: 'told', host: uidOf(envelope[1]), told: readTold(envelope.slice(2)) };
    case codes.bye:
      return { kind: 'bye' };
    case codes.ping:
      return { kind: 'ping' };
    default:
      return fail('code', envelope[0], 'one that callers use');
  }
}

export function toCallerEnvelope(message: ToCaller): Envelope {
  switch (message.kind) {
    case 'welcome': {
      const { clusterName, grant, singletons, tell, ask, rate } = message.welcome;
      return [codes.welcome, clusterName, grant, singletons ?? null, tell, ask, rate];
    }
    case 'host':
      return [codes.host, message.name, message.uid ?? null];
    case 'answer':
      return [codes.answer, message.host, message.envelope];
    case 'reply':
      return [codes.reply, message.receiver, message.body];
    case 'pong':
      return [codes.pong];
    default:
      return message satisfies never;
  }
}

/** @throws WireError */
export function readToCaller(envelope: Envelope): ToCaller {
  switch (envelope[0]) {
    case codes.welcome:
      return { kind: 'welcome', welcome: readWelcome(envelope) };
    case codes.host:
      return { kind: 'host', name: nameOf(envelope[1]), uid: optional(envelope[2], uidOf) };
    case codes.answer:
      return { kind: 'answer', host: uidOf(envelope[1]), envelope: innerOf(envelope[2]) };
    case codes.reply:
      return { kind: 'reply', receiver: receiverOf(envelope[1]), body: bodyOf(envelope[2]) };
    case codes.pong:
      return { kind: 'pong' };
    default:
      return fail('code', envelope[0], 'one that gateways use');
  }
}

function readWelcome(envelope: Envelope): Welcome {
  const singletons = optional(envelope[3], (list) => listOf(list, limits.callerSingletons, 'singletons').map(nameOf));
  return {
    clusterName: textOf(envelope[1], limits.typeNameChars, 'cluster name'),
    grant: textOf(envelope[2], limits.typeNameChars, 'grant'),
    singletons,
    tell: flagOf(envelope[4], 'tell'),
    ask: flagOf(envelope[5], 'ask'),
    rate: countOf(envelope[6], 'rate'),
  };
}

export function toHostEnvelope({ id, session }: CallerStamp, step: HostStep): Envelope {
  const fields = step.kind === 'open' ? startFields(step.start) : [step.name];
  return [codes.callerToHost, id, session, steps.indexOf(step.kind), ...fields];
}

/** @throws WireError */
export function readToHost(envelope: Envelope): { readonly stamp: CallerStamp; readonly step: HostStep } {
  const kind = steps[countOf(envelope[3], 'step')] ?? fail('step', envelope[3], 'a known step');
  const fields = envelope.slice(4);
  const step: HostStep = kind === 'open' ? { kind, start: readStart(fields) } : { kind, name: nameOf(fields[0]) };
  return { stamp: stampOf(envelope), step };
}

export function deliverEnvelope({ id, session }: CallerStamp, told: Told): Envelope {
  return [codes.callerDeliver, id, session, ...toldFields(told)];
}

/** @throws WireError */
export function readDeliver(envelope: Envelope): { readonly stamp: CallerStamp; readonly told: Told } {
  return { stamp: stampOf(envelope), told: readTold(envelope.slice(3)) };
}

export function answerEnvelope(id: string, inner: Envelope): Envelope {
  return [codes.callerAnswer, id, inner];
}

/** @throws WireError */
export function readAnswer(envelope: Envelope): { readonly id: string; readonly inner: Envelope } {
  return { id: idOf(envelope[1]), inner: innerOf(envelope[2]) };
}

export function replyEnvelope(id: string, receiver: string, body: Uint8Array): Envelope {
  return [codes.callerReply, id, receiver, body];
}

/** @throws WireError */
export function readReply(envelope: Envelope): { readonly id: string; receiver: string; body: Uint8Array } {
  return { id: idOf(envelope[1]), receiver: receiverOf(envelope[2]), body: bodyOf(envelope[3]) };
}

function startFields({ name, base, next, lastSentEpoch, repeat }: StreamStart): unknown[] {
  return [name, base, next, lastSentEpoch, repeat];
}

function readStart(fields: readonly unknown[]): StreamStart {
  const [name, first, after, lastSentEpoch, repeat] = tupleOf(fields, 5, 'open');
  const base = countOf(first, 'base');
  const next = countOf(after, 'next');
  if (base < 1 || next < base || next - base > limits.callerWindow) {
    fail('next', next, `within the window from ${base}`);
  }
  return {
    name: nameOf(name),
    base,
    next,
    lastSentEpoch: countOf(lastSentEpoch, 'last epoch'),
    repeat: flagOf(repeat, 'repeat'),
  };
}

function toldFields({ name, epoch, seq, repeat, receiver, body }: Told): unknown[] {
  return [name, epoch, seq, repeat, receiver, body];
}

function readTold(fields: readonly unknown[]): Told {
  const [name, epoch, seq, repeat, receiver, body] = tupleOf(fields, 6, 'message');
  return {
    name: nameOf(name),
    epoch: countOf(epoch, 'epoch'),
    seq: countOf(seq, 'sequence number'),
    repeat: flagOf(repeat, 'repeat'),
    receiver: receiver === null ? null : receiverOf(receiver),
    body: bodyOf(body),
  };
}

function stampOf(envelope: Envelope): CallerStamp {
  return { id: idOf(envelope[1]), session: countOf(envelope[2], 'session') };
}

function idOf(value: unknown): string {
  const id = textOf(value, uidChars, 'caller');
  return id.startsWith(callerPrefix) ? id : fail('caller', value, `an id that starts with ${callerPrefix}`);
}

function uidOf(value: unknown): string {
  return textOf(value, uidChars, 'uid');
}

function nameOf(value: unknown): string {
  return textOf(value, limits.typeNameChars, 'singleton name');
}

/** Names of receivers are made by the caller, and appear in paths. */
function receiverOf(value: unknown): string {
  const text = textOf(value, receiverChars, 'receiver');
  return /^[\w-]+$/.test(text) ? text : fail('receiver', value, 'letters, digits, _ and -');
}

function bodyOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) return fail('body', value, 'bytes');
  if (value.length > limits.callerMessageBytes) {
    fail('body', value.length, `at most ${limits.callerMessageBytes} bytes`);
  }
  return value;
}

function innerOf(value: unknown): Envelope {
  if (!Array.isArray(value) || !Number.isSafeInteger(value[0])) return fail('answer', value, 'an envelope');
  return value as unknown as Envelope;
}

function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === null ? undefined : read(value);
}
