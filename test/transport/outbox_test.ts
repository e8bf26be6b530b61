import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { Link } from '../../src/transport/contract.ts';
import { Outbox } from '../../src/transport/outbox.ts';
import { PeerCounters } from '../../src/transport/peer_counters.ts';
import type { Envelope } from '../../src/wire/frames.ts';

function made() {
  const environment = new ManualEnvironment();
  const socket = { buffered: 0, frames: 0 };
  const link = {
    send: () => void (socket.frames += 1),
    bufferedBytes: () => socket.buffered,
  } as unknown as Link;
  const outbox: Outbox = new Outbox({
    environment,
    counters: new PeerCounters(),
    undeliverable: () => {},
    retry: () => void outbox.pump(link),
  });
  const add = () => outbox.user.add(new Uint8Array(10), {} as Envelope, undefined);
  return { environment, socket, link, outbox, add };
}

test('a full socket that tells of its drain is used again at once, when half of its limit is free', () => {
  const { socket, link, outbox, add } = made();
  socket.buffered = limits.socketBufferBytes + 1;
  add();
  assertEquals([outbox.pump(link), socket.frames, outbox.waiting], [false, 0, true]);
  socket.buffered = limits.socketBufferBytes - 1;
  outbox.drained(link);
  assertEquals([socket.frames, outbox.waiting], [0, true]);
  socket.buffered = limits.socketBufferBytes / 2;
  outbox.drained(link);
  assertEquals([socket.frames, outbox.waiting, outbox.empty], [1, false, true]);
});

test('one that tells nothing is looked at again by the clock', () => {
  const { environment, socket, link, outbox, add } = made();
  socket.buffered = limits.socketBufferBytes + 1;
  add();
  outbox.pump(link);
  environment.advance(10);
  assertEquals(socket.frames, 0);
  socket.buffered = 0;
  environment.advance(10);
  assertEquals(socket.frames, 1);
});

test('a drain that nobody waits for does nothing', () => {
  const { link, outbox, add } = made();
  outbox.drained(link);
  add();
  outbox.drained(link);
  assertEquals(outbox.empty, false);
});
