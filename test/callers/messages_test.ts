import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import fc from 'fast-check';
import {
  answerEnvelope,
  deliverEnvelope,
  type FromCaller,
  fromCallerEnvelope,
  readAnswer,
  readDeliver,
  readFromCaller,
  readReply,
  readToCaller,
  readToHost,
  replyEnvelope,
  type ToCaller,
  toCallerEnvelope,
  toHostEnvelope,
} from '../../src/callers/messages.ts';
import { WireError } from '../../src/cluster/wire_checks.ts';
import type { Envelope } from '../../src/wire/batch.ts';
import { codes } from '../../src/wire/codes.ts';

const start = { name: 'x', base: 3, next: 9, lastSentEpoch: 7, repeat: true };
const told = { name: 'x', epoch: 1, seq: 2, repeat: false, receiver: 'r-1', body: new Uint8Array([1]) };
const stamp = { id: 'caller:1', session: 4 };

const fromCaller: FromCaller[] = [
  { kind: 'hello', session: 1 },
  { kind: 'use', name: 'x' },
  { kind: 'open', host: 'uid', start },
  { kind: 'told', host: 'uid', told },
  { kind: 'told', host: 'uid', told: { ...told, receiver: null } },
  { kind: 'bye' },
  { kind: 'ping' },
];
const toCaller: ToCaller[] = [
  { kind: 'welcome', welcome: { clusterName: 'c', grant: 'g', singletons: ['x'], tell: true, ask: false, rate: 10 } },
  { kind: 'welcome', welcome: { clusterName: 'c', grant: 'g', singletons: undefined, tell: true, ask: true, rate: 1 } },
  { kind: 'host', name: 'x', uid: 'uid' },
  { kind: 'host', name: 'x', uid: undefined },
  { kind: 'answer', host: 'uid', envelope: [codes.acknowledge, 'x', 1, []] },
  { kind: 'reply', receiver: 'r-1', body: new Uint8Array([1]) },
  { kind: 'pong' },
];

describe('messages of callers', () => {
  test('everything arrives as it was said', () => {
    for (const message of fromCaller) assertEquals(readFromCaller(fromCallerEnvelope(message)), message);
    for (const message of toCaller) assertEquals(readToCaller(toCallerEnvelope(message)), message);
    const steps = [{ kind: 'attach', name: 'x' }, { kind: 'open', start }, { kind: 'end', name: 'x' }] as const;
    for (const step of steps) assertEquals(readToHost(toHostEnvelope(stamp, step)), { stamp, step });
    assertEquals(readDeliver(deliverEnvelope(stamp, told)), { stamp, told });
    const inner: Envelope = [codes.refuse, 'x', 1, 0, null];
    assertEquals(readAnswer(answerEnvelope('caller:1', inner)), { id: 'caller:1', inner });
    const body = new Uint8Array([1]);
    assertEquals(readReply(replyEnvelope('caller:1', 'r-1', body)), { id: 'caller:1', receiver: 'r-1', body });
  });

  test('any field replaced by anything is read as it is, or refused in one way', () => {
    const readers: [Envelope[], (envelope: Envelope) => unknown][] = [
      [fromCaller.map(fromCallerEnvelope), readFromCaller],
      [toCaller.map(toCallerEnvelope), readToCaller],
      [[toHostEnvelope(stamp, { kind: 'open', start })], readToHost],
      [[deliverEnvelope(stamp, told)], readDeliver],
      [[answerEnvelope('caller:1', [1])], readAnswer],
      [[replyEnvelope('caller:1', 'r-1', new Uint8Array())], readReply],
    ];
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.nat(), fc.anything({ withBigInt: true }), (which, one, field, value) => {
        const [envelopes, read] = readers[which % readers.length]!;
        const changed = [...envelopes[one % envelopes.length]!] as [number, ...unknown[]];
        changed[field % (changed.length + 1)] = value as never;
        try {
          read(changed);
        } catch (error) {
          if (!(error instanceof WireError)) throw error;
        }
      }),
      { seed: 11, numRuns: 3_000, endOnFailure: true },
    );
  });

  test('ids of members, names of receivers that are paths, windows out of range', () => {
    const bad: (() => unknown)[] = [
      () => readDeliver(deliverEnvelope({ id: 'a-member', session: 1 }, told)),
      () => readDeliver(deliverEnvelope(stamp, { ...told, receiver: '../x' })),
      () => readToHost(toHostEnvelope(stamp, { kind: 'open', start: { ...start, next: 2 } })),
      () => readToHost(toHostEnvelope(stamp, { kind: 'open', start: { ...start, base: 0 } })),
      () => readToHost(toHostEnvelope(stamp, { kind: 'open', start: { ...start, next: 1_000_000 } })),
    ];
    for (const read of bad) assertThrows(read, WireError);
  });
});
