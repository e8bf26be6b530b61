/** The state of a persistent actor as it travels with a planned move. */
import { Codec } from '../wire/codec.ts';
import { limits } from '../limits.ts';
import type { Mark } from './recovery.ts';
import { readWith, type Schema, writeWith } from './schema.ts';

const format = 1;
const codec = new Codec({ maxBytes: limits.handOverStateBytes });

/** @throws SerializationError */
export function packWarmState<State>(persistenceId: string, mark: Mark<State>, schema: Schema<State>): Uint8Array {
  return codec.encode([format, persistenceId, mark.sequenceNr, schema.version, writeWith(schema, mark.state)]);
}

/** @throws Error when it is not the state of this actor */
export function unpackWarmState<State>(persistenceId: string, bytes: Uint8Array, schema: Schema<State>): Mark<State> {
  const value = codec.decode(bytes);
  if (!Array.isArray(value) || value[0] !== format) throw new TypeError('this is no state of a persistent actor');
  const [, id, sequenceNr, version, state] = value as [number, unknown, unknown, unknown, unknown];
  if (id !== persistenceId) throw new TypeError(`the state is that of '${String(id)}', not of '${persistenceId}'`);
  if (!Number.isSafeInteger(sequenceNr) || (sequenceNr as number) < 0 || typeof version !== 'number') {
    throw new TypeError('the state has no sequence number');
  }
  return { sequenceNr: sequenceNr as number, state: readWith(schema, state, version) };
}
