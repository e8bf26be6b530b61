/** Envelopes that go by way of a third member. */
import { countOf, fail, textOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';

const relaySteps = ['pass', 'from', 'reached'] as const;

/** `pass`: to the process `uid`; `from`: it is from the process `uid`; `reached`: that process can be reached. */
export interface RelayMessage {
  readonly name: string;
  readonly step: (typeof relaySteps)[number];
  readonly uid: string;
  readonly inner: Envelope | undefined;
}

export function relayEnvelope({ name, step, uid, inner }: RelayMessage): Envelope {
  return [codes.relay, name, relaySteps.indexOf(step), uid, inner ?? null];
}

export function readRelay(envelope: Envelope): RelayMessage {
  const inner = envelope[4];
  if (inner !== null && !(Array.isArray(inner) && Number.isSafeInteger(inner[0]))) fail('inner', inner, 'an envelope');
  return {
    name: textOf(envelope[1], limits.typeNameChars, 'singleton name'),
    step: relaySteps[countOf(envelope[2], 'step')] ?? fail('step', envelope[2], 'a known step'),
    uid: textOf(envelope[3], limits.uidChars, 'uid'),
    inner: inner === null ? undefined : inner as unknown as Envelope,
  };
}
