/** What every adapter must do, run against the one of the runtime that executes this file. */
import type { Socket as TcpSocket } from 'node:net';
import { test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertLess, assertRejects, assertStringIncludes } from '@std/assert';
import { runtime } from '#runtime';
import type { LinkClose } from '../../src/transport/contract.ts';
import { ListenError } from '../../src/transport/errors.ts';
import type { Listener, ListenOptions, Runtime, Socket } from '../../src/transport/runtime.ts';
import { pause, until } from '../transport/local_environment.ts';
import { frame, rawClient, rawServer, unmasked, upgradeAnswer, upgradeRequest } from './raw_peer.ts';
import { testTls } from './tls_fixture.ts';

const maxFrameBytes = 1024 * 1024;

interface Heard {
  readonly socket: Socket;
  readonly frames: Uint8Array[];
  readonly closes: LinkClose[];
}

function hear(socket: Socket): Heard {
  const heard: Heard = { socket, frames: [], closes: [] };
  socket.onMessage = (bytes) => void heard.frames.push(bytes);
  socket.onClose = (close) => void heard.closes.push(close);
  return heard;
}

interface Server {
  readonly listener: Listener;
  readonly heard: Heard[];
}

async function serve(overrides: Partial<ListenOptions> = {}): Promise<Server> {
  const heard: Heard[] = [];
  const listener = await runtime.listen({
    hostname: '127.0.0.1',
    port: 0,
    socketPath: '/cluster/ws',
    subprotocol: 'singlet.v1',
    maxFrameBytes,
    fetch: async (request) => new Response(`hello ${new URL(request.url).pathname}${await request.text()}`),
    admit: () => true,
    onSocket: (socket) => void heard.push(hear(socket)),
    onLost: () => {},
    ...overrides,
  });
  return { listener, heard };
}

type Outcome = Parameters<Parameters<Runtime['dial']>[1]>[0];

function dial(port: number, timeoutMs = 2_000): Promise<Outcome> {
  const url = `ws://127.0.0.1:${port}/cluster/ws`;
  return new Promise((resolve) => runtime.dial({ url, subprotocol: 'singlet.v1', timeoutMs, maxFrameBytes }, resolve));
}

async function dialed(port: number): Promise<Heard> {
  const outcome = await dial(port);
  if ('reason' in outcome) throw new Error(`${outcome.reason}: ${outcome.detail}`);
  return hear(outcome);
}

async function pair(): Promise<{ server: Server; near: Heard; far: Heard }> {
  const server = await serve();
  const near = await dialed(server.listener.port);
  await until('the server has the socket', () => server.heard.length === 1);
  return { server, near, far: server.heard[0] as Heard };
}

test('one port serves HTTP and the upgrade', async () => {
  const { server, near, far } = await pair();
  const url = `http://127.0.0.1:${server.listener.port}`;
  assertEquals(await (await fetch(`${url}/alive`)).text(), 'hello /alive');
  near.socket.send(Uint8Array.of(1, 2, 3));
  far.socket.send(Uint8Array.of(4));
  await until('both frames', () => near.frames.length === 1 && far.frames.length === 1);
  assertEquals([...far.frames[0] as Uint8Array], [1, 2, 3]);
  assertEquals((far.frames[0] as Uint8Array).constructor.name, 'Uint8Array');
  assertEquals((near.frames[0] as Uint8Array).constructor.name, 'Uint8Array');
  await server.listener.close();
});

test('requests that may not upgrade get a clear answer', async () => {
  let admits = 0;
  const server = await serve({ admit: () => ++admits > 1, admitOrigin: (origin) => origin === 'http://good.example' });
  const url = `http://127.0.0.1:${server.listener.port}/cluster/ws`;
  const plain = await fetch(url);
  assertEquals(plain.status, 426);
  assertStringIncludes(await plain.text(), 'WebSocket');
  const { port } = server.listener;
  const answers = [
    await rawClient(port, upgradeRequest('/cluster/ws', 'other')),
    await rawClient(port, upgradeRequest('/cluster/ws', 'singlet.v1', 'Origin: http://evil.example\r\n')),
    await rawClient(port),
    await rawClient(port, upgradeRequest('/cluster/ws', 'singlet.v1', 'Origin: http://good.example\r\n')),
  ];
  assertEquals(answers.map(({ answer }) => Number(answer.split(' ')[1])), [400, 403, 503, 101]);
  answers.forEach(({ socket }) => socket.destroy());
  await server.listener.close();
});

test('FB-095: a handler that throws costs its caller a 500 and nobody else anything', async () => {
  const server = await serve({
    fetch: (request) => {
      if (request.url.endsWith('/bad')) throw new Error('boom');
      return new Response('good');
    },
  });
  const url = `http://127.0.0.1:${server.listener.port}`;
  const bad = await fetch(`${url}/bad`);
  assertEquals([bad.status, (await bad.text()).includes('boom')], [500, false]);
  assertEquals(await (await fetch(`${url}/x`)).text(), 'good');
  await server.listener.close();
});

test('a second listener on the port fails and names host, port and cause', async () => {
  const first = await serve();
  const { port } = first.listener;
  const error = await assertRejects(() => serve({ port }), ListenError, `127.0.0.1 port ${port}: port in use`);
  assertEquals([error.host, error.port, error.why], ['127.0.0.1', port, 'port-in-use']);
  await assertRejects(() => serve({ port, hostname: '0.0.0.0' }), ListenError, 'port in use');
  await first.listener.close();
  const again = await serve({ port });
  await again.listener.close();
});

test('an address of another machine cannot be bound', async () => {
  const error = await assertRejects(() => serve({ hostname: '203.0.113.1' }), ListenError);
  assertEquals([error.why, error.host], ['no-such-address', '203.0.113.1']);
});

test('events wait until the owner listens, and keep their order', async () => {
  let late: Socket | undefined;
  const server = await serve({ onSocket: (socket) => void (late = socket) });
  const near = await dialed(server.listener.port);
  await until('the socket', () => late !== undefined);
  for (let i = 0; i < 20; i++) near.socket.send(Uint8Array.of(i));
  near.socket.close(4001, 'done');
  await pause(150);
  const order: (number | string)[] = [];
  (late as Socket).onMessage = (bytes) => void order.push(bytes[0] ?? -1);
  (late as Socket).onClose = (close) => void order.push(`closed ${close.code}`);
  await until('the close', () => order.length === 21);
  assertEquals(order, [...Array.from({ length: 20 }, (_, i) => i), 'closed 4001']);
  await server.listener.close();
});

test('a close is told once on both sides, with its code and reason', async () => {
  for (const side of ['near', 'far'] as const) {
    const both = await pair();
    both[side].socket.close(4123, 'for a reason');
    both[side].socket.close(4999, 'again');
    await until('both closes', () => both.near.closes.length > 0 && both.far.closes.length > 0);
    await pause(50);
    const expected = { code: 4123, reason: 'for a reason', clean: true };
    assertEquals([both.near.closes, both.far.closes], [[expected], [expected]]);
    assertEquals(both[side].socket.send(Uint8Array.of(1)), true);
    await both.server.listener.close();
  }
});

test('a reason too long for a close frame is cut, not refused', async () => {
  const { server, near, far } = await pair();
  near.socket.close(4000, 'ü'.repeat(100));
  await until('the close', () => far.closes.length === 1);
  assertEquals(far.closes[0], { code: 4000, reason: 'ü'.repeat(61), clean: true });
  await server.listener.close();
});

test('a connection that breaks is a loss on both sides', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port);
  await until('the socket', () => server.heard.length === 1);
  raw.socket.destroy();
  await until('the loss', () => server.heard[0]?.closes.length === 1);
  assertEquals([server.heard[0]?.closes[0]?.code, server.heard[0]?.closes[0]?.clean], [1006, false]);
  await server.listener.close();

  const hostile = await rawServer('upgrading');
  const near = await dialed(hostile.port);
  hostile.close();
  await until('the loss', () => near.closes.length === 1);
  assertEquals([near.closes[0]?.code, near.closes[0]?.clean], [1006, false]);
});

test('R111, FB-090: frames above the limit are not handed on and end that connection only', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port);
  raw.socket.write(frame(2, new Uint8Array(2 * maxFrameBytes)));
  await until('the close', () => server.heard[0]?.closes.length === 1);
  assertEquals([server.heard[0]?.frames.length, server.heard[0]?.closes[0]?.clean], [0, false]);
  raw.socket.destroy();

  const hostile = await rawServer(
    'upgrading',
    (socket) => void setTimeout(() => socket.write(frame(2, new Uint8Array(2 * maxFrameBytes), false)), 50),
  );
  const near = await dialed(hostile.port);
  await until('the close', () => near.closes.length === 1);
  assertEquals([near.frames.length, near.closes[0]?.clean], [0, false]);
  hostile.close();

  const whole = await dialed(server.listener.port);
  whole.socket.send(new Uint8Array(maxFrameBytes));
  await until('a frame at the limit', () => server.heard[1]?.frames[0]?.byteLength === maxFrameBytes);
  await server.listener.close();
});

test('FB-088: broken frames end that connection only', async () => {
  const server = await serve();
  const broken: Uint8Array[] = [
    frame(1, new TextEncoder().encode('text')),
    frame(11, Uint8Array.of(1)),
    frame(9, new Uint8Array(126)),
    Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
    frame(8, Uint8Array.of(3)),
  ];
  for (const [index, bytes] of broken.entries()) {
    const raw = await rawClient(server.listener.port);
    await until('the socket', () => server.heard.length === index + 1);
    raw.socket.on('error', () => {});
    raw.socket.write(bytes);
    await until(`the end of connection ${index}`, () => server.heard[index]?.closes.length === 1);
    raw.socket.destroy();
  }
  for (const heard of server.heard) assertEquals([heard.frames.length, heard.closes.length], [0, 1]);
  const half = await rawClient(server.listener.port);
  half.socket.write(frame(2, new Uint8Array(100)).subarray(0, 50));
  const fine = await dialed(server.listener.port);
  fine.socket.send(Uint8Array.of(7));
  await until('the healthy one', () => server.heard.at(-1)?.frames.length === 1);
  half.socket.destroy();
  await server.listener.close();
});

test('R123: what a slow peer has not read yet waits, and all of it arrives in order', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port, upgradeRequest(), true);
  await until('the socket', () => server.heard.length === 1);
  const { socket, closes } = server.heard[0] as Heard;
  const size = 64 * 1024;
  const count = 800;
  for (let i = 0; i < count; i++) assertEquals(socket.send(new Uint8Array(size).fill(i & 255)), true);
  assert(socket.bufferedBytes() > 16 * 1024 * 1024, `only ${socket.bufferedBytes()} bytes wait`);
  raw.socket.resume();
  await until('everything', () => raw.bytes() >= count * (size + 10), 20_000);
  await until('nothing waits', () => socket.bufferedBytes() === 0);
  assertEquals([raw.bytes(), closes.length], [count * (size + 10), 0]);
  raw.socket.destroy();
  await server.listener.close();
});

test('a socket that says so has its own copy of a frame when it has sent it, also of frames that wait', async () => {
  const { server, near, far } = await pair();
  for (const [{ socket }, { frames }] of [[near, far], [far, near]] as const) {
    if (socket.copies !== true) continue;
    const frame = new Uint8Array(100_000);
    for (let n = 0; n < 150; n += 1) socket.send(frame.fill(n));
    frame.fill(200);
    await until('all frames', () => frames.length === 150, 20_000);
    assert(frames.every((bytes, n) => bytes.length === frame.length && bytes.every((byte) => byte === n)));
  }
  assertEquals([near.socket.copies === true, far.socket.copies === true], Array(2).fill(runtime.name !== 'node'));
  await server.listener.close();
});

test('FB-086: a burst of small frames arrives whole and in order', async () => {
  const { server, near, far } = await pair();
  for (let i = 0; i < 5_000; i++) near.socket.send(Uint8Array.of(i >> 8, i & 255));
  await until('all frames', () => far.frames.length === 5_000);
  assert(far.frames.every((bytes, i) => (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0) === i));
  await server.listener.close();
});

/** Numbered frames, the last of them at the limit. */
function numberedBurst(large = 1): Uint8Array[] {
  const burst = Array.from({ length: 10_000 }, (_, n) => new Uint8Array(120).fill(n & 255));
  return [...burst, ...Array.from({ length: large }, (_, n) => new Uint8Array(maxFrameBytes).fill(n + 7))];
}

test('FB-082: a burst and a large frame behind it arrive whole and in order, in both directions, also at a peer that reads late', async () => {
  const { server, near, far } = await pair();
  const burst = numberedBurst();
  for (const [from, to] of [[near, far], [far, near]] as const) {
    for (const bytes of burst) assertEquals(from.socket.send(bytes), true);
    await until('all of it', () => to.frames.length === burst.length, 20_000);
    assert(to.frames.every((bytes, n) => bytes.length === burst[n]!.length && bytes[0] === burst[n]![0]));
    assertEquals(to.frames.at(-1), burst.at(-1));
  }
  await server.listener.close();

  const read: Uint8Array[] = [];
  let reader: TcpSocket | undefined;
  const late = await rawServer('upgrading', (socket) => {
    reader = socket;
    socket.pause();
    socket.on('data', (data: Uint8Array) => void read.push(Uint8Array.from(data)));
    socket.pause();
  });
  const writer = await dialed(late.port);
  const large = 12;
  const more = numberedBurst(large);
  for (const bytes of more) assertEquals(writer.socket.send(bytes), true);
  assert(writer.socket.bufferedBytes() > 0);
  await pause(100);
  reader!.resume();
  const masked = 6;
  const expected = 10_000 * (120 + masked) + large * (maxFrameBytes + masked + 8);
  await until('all bytes', () => read.reduce((sum, { length }) => sum + length, 0) === expected, 20_000);
  const frames = unmasked(read);
  assert(frames.every((bytes, n) => bytes.length === more[n]!.length && bytes[0] === more[n]![0]));
  assertEquals([frames.length, frames.at(-1)], [more.length, more.at(-1)]);
  late.close();
});

test('FB-084: a close behind a full buffer reaches a peer that reads on, after all that was sent before it', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port, upgradeRequest(), true);
  await until('the socket', () => server.heard.length === 1);
  const { socket } = server.heard[0] as Heard;
  let last: number[] = [];
  raw.socket.on('data', (data: Uint8Array) => void (last = [...last, ...data.subarray(-16)].slice(-16)));
  raw.socket.pause();
  for (let n = 0; n < 128; n++) socket.send(new Uint8Array(64 * 1024));
  assert(socket.bufferedBytes() > 1024 * 1024, `only ${socket.bufferedBytes()} bytes wait`);
  socket.close(4_001, 'leaves');
  raw.socket.resume();
  await until('the end of the data', () => raw.bytes() >= 128 * (64 * 1024 + 10) + 10, 20_000);
  assertEquals(last.slice(-10), [0x88, 8, 4_001 >> 8, 4_001 & 255, ...new TextEncoder().encode('leaves')]);
  raw.socket.destroy();
  await server.listener.close();
});

test('FB-093: who keeps sending to a peer that is gone is told of the end once, and nothing is thrown anywhere', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port);
  const quiet = await rawClient(server.listener.port, upgradeRequest(), true);
  raw.socket.on('error', () => {});
  const hostile = await rawServer('upgrading');
  const near = await dialed(hostile.port);
  await until('the sockets', () => server.heard.length === 2);
  const [far, mute] = server.heard as [Heard, Heard];
  raw.socket.resetAndDestroy();
  hostile.close();
  for (let n = 0; n < 300; n++) {
    for (const { socket } of [near, far, mute]) socket.send(new Uint8Array(4_096));
    await pause(2);
  }
  await until('both losses', () => near.closes.length > 0 && far.closes.length > 0);
  assertEquals([near.closes.length, near.closes[0]?.clean], [1, false]);
  assertEquals([far.closes.length, far.closes[0]?.clean], [1, false]);
  assertEquals(mute.closes, []);
  for (const { socket } of [near, far]) {
    assertEquals([socket.send(Uint8Array.of(1)), socket.bufferedBytes()], [true, 0]);
  }
  quiet.socket.destroy();
  await server.listener.close();
});

test('FB-092: a peer that never answers a close does not delay it', async () => {
  const server = await serve();
  const raw = await rawClient(server.listener.port, upgradeRequest(), true);
  const hostile = await rawServer('upgrading');
  const near = await dialed(hostile.port);
  await until('the socket', () => server.heard.length === 1);
  const far = server.heard[0] as Heard;
  const start = performance.now();
  near.socket.close(4000, 'bye');
  far.socket.close(4000, 'bye');
  await until('both closes', () => near.closes.length === 1 && far.closes.length === 1, 3_000);
  assertLess(performance.now() - start, 2_500);
  assertEquals([near.closes[0]?.clean, far.closes[0]?.code], [true, 4000]);
  raw.socket.destroy();
  hostile.close();
  await server.listener.close();
});

test('FB-124, FB-125: a listener closes though sockets are open and peers are mute', async () => {
  const { server, near, far } = await pair();
  const raw = await rawClient(server.listener.port, upgradeRequest(), true);
  const hanging = await rawClient(server.listener.port, 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n');
  await until('the sockets', () => server.heard.length === 2);
  const start = performance.now();
  await Promise.all([server.listener.close(), server.listener.close()]);
  assertLess(performance.now() - start, 3_500);
  await until('all closes', () => near.closes.length === 1 && far.closes.length === 1);
  await until('the mute one', () => server.heard[1]?.closes.length === 1);
  assertEquals(near.closes[0]?.clean, true);
  const refused = await dial(server.listener.port);
  assert('reason' in refused && refused.reason === 'refused', JSON.stringify(refused));
  raw.socket.destroy();
  hanging.socket.destroy();
});

test('a dial says why it failed', async () => {
  const gone = await serve();
  await gone.listener.close();
  const silent = await rawServer('silent');
  const dropping = await rawServer('dropping');
  const closed = await serve({ admit: () => false });
  const outcomes = await Promise.all([
    dial(gone.listener.port),
    dial(silent.port, 300),
    dial(closed.listener.port),
    dial(dropping.port),
  ]);
  const reasons = outcomes.map((outcome) => 'reason' in outcome ? outcome.reason : 'open');
  assertEquals(reasons.slice(0, 3), ['refused', 'timeout', 'other']);
  assert(reasons[3] === 'reset' || reasons[3] === 'other', reasons[3]);
  [silent, dropping].forEach((server) => server.close());
  await closed.listener.close();
});

test('a frame on a quiet connection waits for no acknowledgement, whoever dialled', async () => {
  const { server, near, far } = await pair();
  for (const [from, to] of [[near, far], [far, near]] as const) {
    const times: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      await pause(15);
      const start = performance.now();
      await new Promise<void>((resolve) => {
        to.socket.onMessage = () => resolve();
        from.socket.send(new Uint8Array(2_000));
      });
      times.push(performance.now() - start);
      // The answer is what makes the peer delay its next acknowledgement.
      to.socket.send(Uint8Array.of(1));
    }
    // With Nagle's algorithm on, all of them take 40 ms and more; a busy machine delays some.
    const fast = times.filter((time) => time < 25).length;
    assert(fast >= 4, `${times.map((time) => time.toFixed(1)).join(' ')} ms`);
  }
  await server.listener.close();
});

test('a dialled connection joins fragments and answers pings', async () => {
  let heard = '';
  const peer = await rawServer('upgrading', (socket) => {
    socket.on('data', (data: Uint8Array) => heard += String.fromCharCode(...data));
    const [first, last] = [frame(2, Uint8Array.of(1, 2), false), frame(0, Uint8Array.of(3), false)];
    first[0] = 2;
    for (const bytes of [first, frame(9, Uint8Array.of(7), false), last]) socket.write(bytes);
  });
  const near = await dialed(peer.port);
  await until('the frame', () => near.frames.length === 1);
  assertEquals([...near.frames[0] as Uint8Array], [1, 2, 3]);
  await until('the pong', () => heard.length === 7);
  assertEquals([heard.charCodeAt(0), heard.charCodeAt(1)], [0x8a, 0x81]);
  peer.close();
});

test('a wrong answer to the upgrade fails the dial', async () => {
  const answers: readonly ((accept: string) => string)[] = [
    () => upgradeAnswer('AAAAAAAAAAAAAAAAAAAAAAAAAAA='),
    (accept) => upgradeAnswer(accept).replace('singlet.v1', 'singlet.v2'),
    (accept) => upgradeAnswer(accept).replace('Upgrade: websocket', 'Upgrade: h2c'),
    (accept) => upgradeAnswer(accept).replace('101', '200'),
    () => 'SSH-2.0-x\r\n\r\n',
  ];
  for (const [index, answer] of answers.entries()) {
    const peer = await rawServer('upgrading', () => {}, answer);
    const outcome = await dial(peer.port);
    assert('reason' in outcome && outcome.reason !== 'refused', `answer ${index} was taken`);
    peer.close();
  }
});

test('a cancelled dial calls nobody and leaves nothing open', async () => {
  const server = await serve();
  const silent = await rawServer('silent');
  let calls = 0;
  for (const port of [server.listener.port, silent.port]) {
    const url = `ws://127.0.0.1:${port}/cluster/ws`;
    const cancel = runtime.dial(
      { url, subprotocol: 'singlet.v1', timeoutMs: 500, maxFrameBytes },
      () => calls++,
    );
    cancel();
    cancel();
  }
  await pause(700);
  assertEquals(calls, 0);
  await until('the server sees no open socket', () => server.heard.every(({ closes }) => closes.length === 1));
  silent.close();
  await server.listener.close();
});

test('a probe tells open from refused', async () => {
  const server = await serve();
  const silent = await rawServer('silent');
  const probe = (port: number) => new Promise((resolve) => runtime.probe('127.0.0.1', port, 1_000, resolve));
  assertEquals([await probe(server.listener.port), await probe(silent.port)], ['open', 'open']);
  silent.close();
  await server.listener.close();
  assertEquals(await probe(server.listener.port), 'refused');
  let calls = 0;
  runtime.probe('127.0.0.1', server.listener.port, 1_000, () => calls++)();
  await pause(50);
  assertEquals(calls, 0);
});

test("R120: TLS with a certificate authority of one's own; others are refused", async () => {
  const server = await serve({ tls: testTls });
  const { port } = server.listener;
  const dialTls = (ca?: string) =>
    new Promise<Outcome>((resolve) =>
      runtime.dial({
        url: `wss://localhost:${port}/cluster/ws`,
        subprotocol: 'singlet.v1',
        timeoutMs: 2_000,
        maxFrameBytes,
        ...(ca === undefined ? {} : { tls: { ca } }),
      }, resolve)
    );
  const outcome = await dialTls(testTls.ca);
  assert(!('reason' in outcome), JSON.stringify(outcome));
  const near = hear(outcome);
  near.socket.send(Uint8Array.of(9));
  await until('the frame', () => server.heard[0]?.frames.length === 1);
  assert('reason' in await dialTls());
  const answer = await runtime.fetch(`https://localhost:${port}/x`, {}, { ca: testTls.ca });
  assertEquals([answer.status, await answer.text()], [200, 'hello /x']);
  const put = await runtime.fetch(`https://localhost:${port}/x`, { method: 'PUT', body: ' and a body' }, {
    ca: testTls.ca,
  });
  assertEquals(await put.text(), 'hello /x and a body');
  await assertRejects(() => runtime.fetch(`https://localhost:${port}/x`, {}));
  await server.listener.close();
});

test('R120: a listener that asks for certificates turns away who has none', async () => {
  if (runtimeName() === 'deno') return;
  const server = await serve({ tls: { ...testTls, clientCertificates: true } });
  const { port } = server.listener;
  const { ca, cert, key } = testTls;
  const dialTls = (tls: object) =>
    new Promise<Outcome>((resolve) => {
      const url = `wss://localhost:${port}/cluster/ws`;
      runtime.dial({ url, subprotocol: 'singlet.v1', timeoutMs: 3_000, maxFrameBytes, tls }, resolve);
    });
  assert('reason' in await dialTls({ ca }));
  const outcome = await dialTls({ ca, cert, key });
  assert(!('reason' in outcome), JSON.stringify(outcome));
  hear(outcome);
  const answer = await runtime.fetch(`https://localhost:${port}/x`, {}, { ca, cert, key });
  assertEquals([answer.status, await answer.text()], [200, 'hello /x']);
  await assertRejects(() => runtime.fetch(`https://localhost:${port}/x`, {}, { ca }));
  await server.listener.close();
});

test('the rest of the runtime', async () => {
  assertEquals([runtime.name, runtime.randomBytes(32).byteLength], [runtimeName(), 32]);
  assert(Array.isArray(runtime.args()));
  assertEquals(runtime.environmentVariable('SINGLET_SURELY_UNSET'), undefined);
  const text = await runtime.readTextFile(new URL(import.meta.url).pathname);
  assertStringIncludes(text, 'the rest of the runtime');
  const endless = await runtime.readTextFile('/dev/zero').catch((error: unknown) => error);
  assertStringIncludes(String(endless), 'cannot read /dev/zero: it has more than 1048576 bytes');
  assertInstanceOf(await runtime.readTextFile('/nonexistent').catch((error: unknown) => error), Error);
});

function runtimeName(): string {
  return 'Bun' in globalThis ? 'bun' : 'Deno' in globalThis ? 'deno' : 'node';
}

test('a handler may read the signal of a request: it aborts when a reader goes away, and nobody is warned', async () => {
  const said: unknown[][] = [];
  const { warn } = console;
  console.warn = (...words) => void said.push(words);
  let gone = false;
  const { listener } = await serve({
    fetch: (request) => {
      if (new URL(request.url).pathname === '/short') {
        return Promise.resolve(new Response(String(request.signal.aborted)));
      }
      request.signal.addEventListener('abort', () => gone = true);
      const body = new ReadableStream<Uint8Array>({ start: (stream) => stream.enqueue(new Uint8Array([1])) });
      return Promise.resolve(new Response(body));
    },
  });
  try {
    const base = `http://127.0.0.1:${listener.port}`;
    assertEquals(await (await fetch(`${base}/short`)).text(), 'false');
    const reader = new AbortController();
    const { body } = await fetch(`${base}/stream`, { signal: reader.signal });
    await body!.getReader().read();
    assertEquals(gone, false);
    reader.abort();
    await until('the signal', () => gone);
    assertEquals(said, []);
  } finally {
    console.warn = warn;
    await listener.close();
  }
});
