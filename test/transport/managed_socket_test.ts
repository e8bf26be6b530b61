import { test } from 'node:test';
import { assertEquals, assertLess } from '@std/assert';
import { ManagedSocket, type RawSocket } from '../../adapters/shared/managed_socket.ts';
import { pause } from './local_environment.ts';

function made(raw: Partial<RawSocket> = {}) {
  const calls: string[] = [];
  const socket = new ManagedSocket({
    send: () => true,
    bufferedBytes: () => 7,
    close: (code, reason) => void calls.push(`close ${code} ${reason}`),
    terminate: () => void calls.push('terminate'),
    ...raw,
  }, 10);
  const events: string[] = [];
  const listen = () => {
    socket.onMessage = (bytes) => void events.push(`frame ${bytes[0]}`);
    socket.onClose = ({ code, clean }) => void events.push(`close ${code} ${clean}`);
  };
  return { socket, calls, events, listen };
}

test('a frame that the runtime drops, and one it throws on, is a false; after the end it is not', async () => {
  for (const send of [() => false, () => void JSON.parse('{') as unknown as boolean]) {
    const { socket, listen } = made({ send });
    listen();
    assertEquals(socket.send(Uint8Array.of(1)), false);
    socket.ended(1000, '');
    assertEquals([socket.send(Uint8Array.of(1)), socket.bufferedBytes()], [true, 0]);
  }
  await pause(0);
});

test('events before the owner listens come in order, later ones behind them', async () => {
  const { socket, events, listen } = made();
  socket.received(Uint8Array.of(1));
  socket.received(Uint8Array.of(2));
  listen();
  socket.received(Uint8Array.of(3));
  assertEquals(events, []);
  await pause(0);
  socket.received(Uint8Array.of(4));
  assertEquals(events, ['frame 1', 'frame 2', 'frame 3', 'frame 4']);
});

test('R115: an owner that throws on a frame costs that connection and nothing else', async () => {
  const { socket, calls, events, listen } = made();
  listen();
  socket.onMessage = () => {
    throw new Error('owner');
  };
  socket.received(Uint8Array.of(1));
  socket.received(Uint8Array.of(2));
  assertEquals(calls, ['close 4501 handler failed']);
  socket.ended(4501, '');
  await pause(0);
  assertEquals(events, ['close 4501 false']);
});

test('abnormal codes look alike on every runtime, ours and 1000 are clean', async () => {
  for (const code of [0, 1001, 1002, 1005, 1006, 1009, 1011, 3000]) {
    const { socket, events, listen } = made();
    listen();
    socket.ended(code, '');
    await pause(0);
    assertEquals(events, ['close 1006 false']);
  }
  for (const code of [1000, 4000, 4999]) {
    const { socket, events, listen } = made();
    listen();
    socket.ended(code, '');
    socket.ended(1006, '');
    await pause(0);
    assertEquals(events, [`close ${code} true`]);
  }
});

test('a close that nobody answers ends within its bound; what still arrives is dropped', async () => {
  const { socket, calls, events, listen } = made();
  listen();
  const start = performance.now();
  socket.close(4000, 'bye');
  socket.close(4001, 'again');
  socket.received(Uint8Array.of(1));
  assertEquals([calls, events], [['close 4000 bye'], []]);
  while (events.length === 0 && performance.now() - start < 3_000) await pause(10);
  assertLess(performance.now() - start, 1_500);
  assertEquals([calls, events], [['close 4000 bye', 'terminate'], ['close 4000 true']]);
});

test('oversized and text frames end the connection as a loss', async () => {
  const large = made();
  large.listen();
  large.socket.received(new Uint8Array(11));
  large.socket.ended(1000, '');
  const text = made();
  text.listen();
  text.socket.receivedText();
  text.socket.ended(1005, '');
  await pause(0);
  assertEquals([large.events, text.events], [['close 4400 false'], ['close 4400 false']]);
});

test('a terminate never calls back inside the call', async () => {
  const { socket, calls, events, listen } = made();
  listen();
  socket.terminate();
  socket.terminate();
  assertEquals([calls, events], [['terminate'], []]);
  await pause(0);
  assertEquals(events, ['close 1006 false']);
});
