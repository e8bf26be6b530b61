import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { CallerGate } from '../../src/transport/caller_gate.ts';
import { callerHello, frameText, proofFrame, proofText } from '../../src/transport/caller_handshake.ts';
import type { Link } from '../../src/transport/contract.ts';
import { frameKeysFrom } from '../../src/transport/frame_keys.ts';
import type { Socket } from '../../src/transport/runtime.ts';
import { importKey } from '../../src/transport/secret_keys.ts';
import { isToken } from '../../src/transport/token.ts';
import { TokenKeys } from '../../src/transport/token_keys.ts';
import { localEnvironment, until } from './local_environment.ts';

const tokens = [['first-token-of-a', 'second-token-of-a'], ['token-of-grant-b']];

class FakeSocket implements Socket {
  readonly sent: Uint8Array[] = [];
  closed: { code: number; reason: string } | undefined;
  onMessage: (bytes: Uint8Array) => void = () => {};
  onDrain: () => void = () => {};
  onClose: Socket['onClose'] = () => {};
  send(bytes: Uint8Array): boolean {
    this.sent.push(bytes);
    return true;
  }
  bufferedBytes(): number {
    return 0;
  }
  close(code: number, reason: string): void {
    if (this.closed !== undefined) return;
    this.closed = { code, reason };
    setTimeout(() => this.onClose({ code, reason, clean: true }), 0);
  }
}

async function gateWith(
  { unready, full = false, timerScale = 1, frameIntegrity = false }: {
    unready?: string;
    full?: boolean;
    timerScale?: number;
    frameIntegrity?: boolean;
  } = {},
) {
  const environment = localEnvironment(timerScale);
  const gate = new CallerGate({
    runtime: { randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)) },
    environment,
    clusterName: 'shop',
    keys: await TokenKeys.import(tokens),
    frameIntegrity,
  });
  const accepted: { link: Link; owner: number }[] = [];
  const frames: Uint8Array[] = [];
  let closed = 0;
  gate.attach({
    unready: () => unready,
    accepted: (link, owner) => {
      if (!full) accepted.push({ link, owner });
      return !full;
    },
    frame: (_link, bytes) => frames.push(bytes),
    closed: () => closed += 1,
  });
  const knock = () => {
    const socket = new FakeSocket();
    assert(gate.endpoint.admit());
    gate.endpoint.onSocket(socket, '127.0.0.1');
    return socket;
  };
  return { gate, environment, accepted, frames, knock, closed: () => closed };
}

const nonce = () => crypto.getRandomValues(new Uint8Array(32));
const key = new Uint8Array(16).fill(7);

async function proof(token: string, text: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  return proofFrame(new Uint8Array(await crypto.subtle.sign('HMAC', await importKey(token), text)));
}

async function prove(socket: FakeSocket, token: string, cluster = '', seals = false): Promise<Uint8Array<ArrayBuffer>> {
  const hello = callerHello(nonce(), key, cluster, seals);
  socket.onMessage(hello);
  const answer = socket.sent[0]!;
  if (answer !== undefined) socket.onMessage(await proof(token, proofText('caller', hello, answer)));
  return hello;
}

describe('the gate of callers', () => {
  test('a token is 16 to 1 024 visible ASCII characters', () => {
    const good = ['x'.repeat(16), 'x'.repeat(1_024), '!~'.repeat(8)];
    const bad = ['x'.repeat(15), 'x'.repeat(1_025), 'with a space inside', 'ümlaut-ümlaut-ümlaut', 12, undefined];
    assertEquals([good.every(isToken), bad.some(isToken)], [true, false]);
  });

  test('who proves a token is let in as the holder of its grant, and the node proves it too', async () => {
    for (
      const [token, owner] of [['first-token-of-a', 0], ['second-token-of-a', 0], ['token-of-grant-b', 1]] as const
    ) {
      const { accepted, knock, gate, frames, closed } = await gateWith();
      const socket = knock();
      const hello = await prove(socket, token);
      await until('accepted', () => accepted.length === 1);
      assertEquals(accepted[0]!.owner, owner);
      assertEquals(accepted[0]!.link.peer.uid, '07'.repeat(16));
      assertEquals(socket.sent[1], await proof(token, proofText('node', hello, socket.sent[0]!)));
      assertEquals([gate.counters.connected, gate.counters.pending], [1, 0]);
      socket.onMessage(new Uint8Array([9]));
      assertEquals(frames.length, 1);
      socket.close(1000, '');
      await until('closed', () => closed() === 1);
      assertEquals(gate.counters.connected, 0);
    }
  });

  for (const [callerAsks, nodeAsks] of [[true, false], [false, true], [true, true], [false, false]] as const) {
    const who = callerAsks ? nodeAsks ? 'both ask' : 'the caller asks' : nodeAsks ? 'the node asks' : 'nobody asks';
    const what = callerAsks || nodeAsks ? 'are sealed' : 'are not sealed';
    test(`frame integrity: where ${who} for it, frames ${what}`, async () => {
      const { accepted, knock, frames, gate } = await gateWith({ frameIntegrity: nodeAsks });
      const socket = knock();
      const token = 'first-token-of-a';
      const hello = await prove(socket, token, '', callerAsks);
      await until('accepted', () => accepted.length === 1);
      const [answer] = socket.sent;
      const keys = await frameKeysFrom(await importKey(token), {
        out: frameText('caller', hello, answer!),
        in: frameText('node', hello, answer!),
      });
      const frame = Uint8Array.of(9, 8);
      accepted[0]!.link.send(frame);
      await until('sent', () => socket.sent.length === 3);
      const sealed = callerAsks || nodeAsks;
      assertEquals(sealed ? await keys.open(socket.sent[2]!, 0) : socket.sent[2], frame);
      socket.onMessage(sealed ? await keys.seal(frame, 0) : frame);
      await until('heard', () => frames.length === 1);
      assertEquals(frames[0], frame);
      // The first again, as somebody on the path would repeat it.
      socket.onMessage(sealed ? await keys.seal(frame, 0) : frame);
      await until('judged', () => frames.length === 2 || socket.closed !== undefined);
      assertEquals([frames.length, socket.closed?.code], sealed ? [1, 4502] : [2, undefined]);
      await until('counted', () => gate.counters.forged === (sealed ? 1 : 0));
    });
  }

  for (
    const [what, frame] of [['shorter than a seal', new Uint8Array(3)], ['without a seal', new Uint8Array(40)]] as const
  ) {
    test(`S7: frame integrity: a frame ${what}, sent right behind the proof, ends the caller and leaves nothing of it`, async () => {
      const { accepted, closed, knock, gate } = await gateWith();
      for (let round = 1; round <= 3; round++) {
        const socket = knock();
        await prove(socket, 'first-token-of-a', '', true);
        socket.onMessage(frame);
        await until('ended', () => socket.closed !== undefined);
        await until('forgotten', () => closed() === accepted.length && gate.counters.forged === round);
        assertEquals([socket.closed?.code, gate.counters.connected, gate.counters.pending], [4502, 0, 0]);
      }
    });
  }

  test('frame integrity: a hello whose wish was taken out on the way proves nothing', async () => {
    const { knock, accepted } = await gateWith();
    const socket = knock();
    const hello = callerHello(nonce(), key, '', true);
    const weakened = Uint8Array.from(hello);
    weakened[0] = callerHello(nonce(), key, '')[0]!;
    socket.onMessage(weakened);
    socket.onMessage(await proof('first-token-of-a', proofText('caller', hello, socket.sent[0]!)));
    await until('refused', () => socket.closed !== undefined);
    assertEquals([socket.closed?.code, accepted.length], [4407, 0]);
  });

  test('a wrong token, a replayed proof, a reflected one and one for nodes prove nothing', async () => {
    const { accepted, knock, gate, environment } = await gateWith();
    const recorded = knock();
    const hello = callerHello(nonce(), key, '');
    recorded.onMessage(hello);
    const right = await proof('token-of-grant-b', proofText('caller', hello, recorded.sent[0]!));
    recorded.onMessage(right);
    await until('accepted', () => accepted.length === 1);
    const attempts: ((socket: FakeSocket) => Promise<void>)[] = [
      async (socket) => void await prove(socket, 'some-wrong-token'),
      // The same hello and proof again: the node's nonce is another one.
      async (socket) => {
        socket.onMessage(hello);
        socket.onMessage(right);
      },
      async (socket) => {
        socket.onMessage(hello);
        socket.onMessage(await proof('token-of-grant-b', proofText('node', hello, socket.sent[0]!)));
      },
      async (socket) => {
        socket.onMessage(hello);
        socket.onMessage(recorded.sent[1]!);
      },
    ];
    for (const attempt of attempts) {
      const socket = knock();
      await attempt(socket);
      await until('refused', () => socket.closed !== undefined);
      assertEquals(socket.closed?.code, 4407);
      assertEquals(socket.sent.length, 1, 'the node proves nothing to a stranger');
    }
    await until('counted', () => gate.counters.failed === attempts.length);
    const log = JSON.stringify(environment.lines);
    assertStringIncludes(log, 'token is not one');
    for (const token of tokens.flat()) assertFalse(log.includes(token));
  });

  test('anything but the two frames, another protocol and another cluster are refused with a code', async () => {
    const { knock } = await gateWith();
    const old = callerHello(nonce(), key, '');
    old[2] = 9;
    const cases: [Uint8Array[], number][] = [
      [[new Uint8Array()], 4400],
      [[new Uint8Array([1, 2, 3])], 4400],
      [[new Uint8Array(100_000)], 4400],
      [[callerHello(nonce(), key, '').slice(0, 40)], 4400],
      [[callerHello(nonce(), key, 'x'.repeat(5_000))], 4400],
      [[callerHello(nonce(), key, ''), callerHello(nonce(), key, '')], 4400],
      [[proofFrame(new Uint8Array(32))], 4400],
      [[old], 4401],
      [[callerHello(nonce(), key, 'market')], 4402],
    ];
    for (const [frames, code] of cases) {
      const socket = knock();
      for (const frame of frames) socket.onMessage(frame);
      await until('refused', () => socket.closed !== undefined);
      assertEquals(socket.closed?.code, code);
    }
  });

  test('a slow handshake ends with its deadline', async () => {
    const { knock, gate } = await gateWith({ timerScale: 0.01 });
    const socket = knock();
    await until('ended', () => socket.closed !== undefined);
    assertEquals(socket.closed?.code, 4408);
    await until('counted', () => gate.counters.pending === 0 && gate.counters.failed === 1);
  });

  test('a flood of connections that prove nothing: places stay bounded, and who has a token still gets in', async () => {
    const { knock, gate, accepted } = await gateWith();
    const flood = Array.from({ length: limits.callerHandshakes * 3 }, knock);
    assertEquals(gate.counters.pending, limits.callerHandshakes);
    assertEquals(gate.counters.evicted, limits.callerHandshakes * 2);
    assertEquals(flood.filter(({ closed }) => closed?.code === 4429).length, limits.callerHandshakes * 2);
    const socket = knock();
    await prove(socket, 'token-of-grant-b');
    await until('accepted', () => accepted.length === 1);
    assertEquals(gate.counters.connected, 1);
  });

  test('a node that is not up, takes no more of this grant, or ends, says so', async () => {
    const joining = await gateWith({ unready: 'this node is joining' });
    const early = joining.knock();
    assertEquals(early.closed, { code: 4409, reason: 'not-ready: this node is joining' });
    const full = await gateWith({ full: true });
    const late = full.knock();
    await prove(late, 'token-of-grant-b');
    await until('refused', () => late.closed !== undefined);
    assertEquals(late.closed?.code, 4429);
    const { gate, knock, accepted } = await gateWith();
    const inside = knock();
    await prove(inside, 'token-of-grant-b');
    await until('accepted', () => accepted.length === 1);
    gate.close(4115, 'this node ends');
    assertEquals(inside.closed?.code, 4115);
    assertFalse(gate.endpoint.admit());
  });
});
