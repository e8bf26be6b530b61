/** Messages about spawning: `[spawn, step, number, …]`. An answer carries the number of what it answers. */
import { countOf, flagOf, textOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { errorFields, readError, type SpawnError } from './spawn_errors.ts';
import { readRegistrationOf, type Registration, registrationValue } from './spawn_registration.ts';

export type SpawnMessage =
  /** To the leader: register this. */
  | { readonly step: 'request'; readonly number: number; readonly wanted: Registration }
  | { readonly step: 'reply'; readonly number: number; readonly error: SpawnError | undefined }
  /** To a member: is the name free there, as that of a top-level actor too (`asHost`)? */
  | { readonly step: 'check'; readonly number: number; readonly name: string; readonly asHost: boolean }
  | { readonly step: 'checked'; readonly number: number; readonly free: boolean }
  /** To a member: say when you have this entry. */
  | { readonly step: 'confirm'; readonly number: number; readonly key: string; readonly version: number }
  | { readonly step: 'confirmed'; readonly number: number };

const steps = ['request', 'reply', 'check', 'checked', 'confirm', 'confirmed'] as const;

export function spawnEnvelope(message: SpawnMessage): Envelope {
  return [codes.spawn, steps.indexOf(message.step), message.number, ...fieldsOf(message)];
}

function fieldsOf(message: SpawnMessage): readonly unknown[] {
  switch (message.step) {
    case 'request':
      return [message.wanted.name, registrationValue(message.wanted)];
    case 'reply':
      return [message.error ? errorFields(message.error) : null];
    case 'check':
      return [message.name, message.asHost];
    case 'checked':
      return [message.free];
    case 'confirm':
      return [message.key, message.version];
    case 'confirmed':
      return [];
    default:
      return message satisfies never;
  }
}

/**
 * Undefined for a step that this version does not know.
 * @throws WireError or OptionsError
 */
export function readSpawnMessage(envelope: Envelope): SpawnMessage | undefined {
  const number = countOf(envelope[2], 'number');
  const step = steps[countOf(envelope[1], 'step')];
  switch (step) {
    case 'request':
      return { step, number, wanted: readRegistrationOf(envelope[3], envelope[4]) };
    case 'reply':
      return { step, number, error: Array.isArray(envelope[3]) ? readError(envelope[3]) : undefined };
    case 'check': {
      const name = textOf(envelope[3], limits.typeNameChars, 'name');
      return { step, number, name, asHost: flagOf(envelope[4] ?? true, 'asHost') };
    }
    case 'checked':
      return { step, number, free: flagOf(envelope[3], 'free') };
    case 'confirm': {
      const key = textOf(envelope[3], limits.entryKeyChars, 'key');
      return { step, number, key, version: countOf(envelope[4], 'version') };
    }
    case 'confirmed':
      return { step, number };
    default:
      return step satisfies undefined;
  }
}
