import { test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { WireError } from '../../src/cluster/wire_checks.ts';
import type { Envelope } from '../../src/transport/peers_contract.ts';
import * as messages from '../../src/singleton/messages.ts';
import { readRelay, relayEnvelope } from '../../src/singleton/relay_messages.ts';

const result = {
  epoch: 9,
  plannedSince: 7,
  from: 'a:1',
  watermarks: [{ stream: 'u', prefix: 5, exceptions: [7, 9] }],
  state: null,
  endedAt: 90,
  offeredTo: ['x/1'],
  givenUp: ['y/2'],
};

test('N10, P38: every hand-over message survives its way over the wire', () => {
  const request = { name: 'x', nonce: 'n/1', epoch: 3 };
  assertEquals(messages.readRequest(messages.requestEnvelope(request)), request);
  const verdicts = [
    { kind: 'not-hosting' },
    { kind: 'stopping' },
    { kind: 'refused', why: 'because' },
    { kind: 'handed-over', result },
  ] as const;
  for (const verdict of verdicts) {
    const answer = {
      name: 'x',
      nonce: 'n/1',
      epochSeen: 9,
      epochStarted: 8,
      verdict,
      endedAgoMs: 10,
      stateBytes: -1,
      checksum: 0,
    };
    assertEquals(messages.readAnswer(messages.answerEnvelope(answer), 100), answer);
  }
  const opened = {
    name: 'x',
    epoch: 2,
    plannedSince: 1,
    verdict: 'announced' as const,
    next: 5,
    prefix: 4,
    exceptions: [],
  };
  assertEquals(messages.readOpened(messages.openedEnvelope(opened)), opened);
  const open = { name: 'x', base: 1, next: 4, lastSentEpoch: 0, repeat: true };
  assertEquals(messages.readOpen(messages.openEnvelope(open)), open);
  for (const hint of ['a:1', undefined]) {
    const refuse = { name: 'x', epoch: 2, why: 'gap' as const, hint };
    assertEquals(messages.readRefuse(messages.refuseEnvelope(refuse)), refuse);
  }
  const chunk = { name: 'x', nonce: 'n', index: 0, bytes: new Uint8Array([1]) };
  assertEquals(messages.readChunk(messages.chunkEnvelope(chunk)), chunk);
  for (const step of ['pass', 'from', 'reached'] as const) {
    const relay = {
      name: 'x',
      step,
      uid: 'u',
      inner: step === 'reached' ? undefined : messages.requestEnvelope(request),
    };
    assertEquals(readRelay(relayEnvelope(relay)), relay);
  }
});

test('R36: what is malformed is refused with the field, and never read half', () => {
  const answer = {
    name: 'x',
    nonce: 'n',
    epochSeen: 9,
    epochStarted: 8,
    verdict: { kind: 'handed-over', result },
    endedAgoMs: 1,
    stateBytes: -1,
    checksum: 0,
  } as const;
  const good = messages.answerEnvelope(answer) as readonly unknown[];
  const bad: unknown[] = [
    undefined,
    null,
    -1,
    1.5,
    NaN,
    Infinity,
    'x'.repeat(1_000),
    {},
    [],
    [[]],
    true,
    new Uint8Array(1),
  ];
  for (let field = 1; field < good.length; field += 1) {
    for (const value of bad) {
      const forged = good.with(field, value) as unknown as Envelope;
      try {
        messages.readAnswer(forged, 100);
      } catch (error) {
        assertEquals((error as Error).name, 'WireError', String(error));
      }
    }
  }
  assertThrows(() => messages.readOpen([40, 'x', 5, 4, 0, false]), WireError, 'next');
  assertThrows(() => messages.readOpen([40, 'x', 1, 1e9, 0, false]), WireError, 'next');
  assertThrows(() => messages.readRequest([30, '', 'n', 1]), WireError, 'name');
  assertThrows(() => messages.readChunk([32, 'x', 'n', 0, 'bytes']), WireError, 'chunk');
});
