import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { webSocketDial } from '../../src/callers/dial.ts';
import { frameText, nodeHello, proofFrame, proofText } from '../../src/transport/caller_handshake.ts';
import type { DialFailure, Link, LinkClose } from '../../src/transport/contract.ts';
import { frameKeysFrom } from '../../src/transport/frame_keys.ts';
import type { Socket } from '../../src/transport/runtime.ts';
import { importKey } from '../../src/transport/secret_keys.ts';
import { localEnvironment, until } from '../transport/local_environment.ts';

const token = 'a-token-for-tests-1';

class NodeSocket implements Socket {
  readonly sent: Uint8Array[] = [];
  closed: { code: number; reason: string } | undefined;
  onMessage: (bytes: Uint8Array) => void = () => {};
  onDrain: () => void = () => {};
  onClose: (close: LinkClose) => void = () => {};
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

/** A caller that has dialled a node, which is this test. */
async function dialled(options: { key?: CryptoKey; sealing?: boolean; onFrame?: () => void } = {}) {
  const socket = new NodeSocket();
  const got = { opened: [] as Link[], failed: [] as DialFailure[], frames: [] as number[], closed: [] as number[] };
  const dial = webSocketDial({
    runtime: {
      randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
      dial: (_options, done) => {
        done(socket);
        return () => {};
      },
    },
    environment: localEnvironment(),
    token: options.key ?? await importKey(token),
    clusterName: undefined,
    ca: undefined,
    frameIntegrity: options.sealing ?? false,
  });
  dial('ws://node.example', {
    opened: (link) => got.opened.push(link),
    failed: (failure) => got.failed.push(failure),
    frame: (_link, bytes) => {
      got.frames.push(bytes[0]!);
      options.onFrame?.();
    },
    closed: (_link, { code }) => got.closed.push(code),
  });
  const hello = nodeHello(crypto.getRandomValues(new Uint8Array(32)), 'shop', false);
  const hellos = [socket.sent[0]!, hello] as const;
  socket.onMessage(hello);
  const prove = async () => {
    await until('the proof of the caller', () => socket.sent.length === 2);
    const text = proofText('node', ...hellos);
    return proofFrame(new Uint8Array(await crypto.subtle.sign('HMAC', await importKey(token), text)));
  };
  return { socket, got, hellos, prove };
}

describe('the side of a caller that dials', () => {
  test('frames right behind the proof of the node wait for its check, in order', async () => {
    const { socket, got, prove } = await dialled();
    for (const frame of [await prove(), Uint8Array.of(7), Uint8Array.of(8)]) socket.onMessage(frame);
    assertEquals(got.frames, []);
    await until('both', () => got.frames.length === 2);
    assertEquals([got.opened.length, got.frames], [1, [7, 8]]);
  });

  test('S7: what waits is bounded, in frames and in bytes', async () => {
    for (const [count, size] of [[65, 1], [3, 1024 * 1024]] as const) {
      const { socket, got, prove } = await dialled();
      socket.onMessage(await prove());
      for (let at = 0; at < count; at += 1) socket.onMessage(new Uint8Array(size));
      assertEquals(got.failed.map(({ code }) => code), ['malformed']);
      await until('closed', () => socket.closed !== undefined);
      assertEquals([got.opened.length, got.frames.length], [0, 0]);
    }
  });

  test('S7: frame integrity: what comes right behind the proof is checked as well, and its end is told once', async () => {
    const { socket, got, hellos, prove } = await dialled({ sealing: true });
    const keys = await frameKeysFrom(await importKey(token), {
      out: frameText('node', ...hellos),
      in: frameText('caller', ...hellos),
    });
    const frames = [await prove(), await keys.seal(Uint8Array.of(7), 0), Uint8Array.of(8)];
    for (const frame of frames) socket.onMessage(frame);
    await until('the end', () => got.closed.length > 0);
    assertEquals([got.opened.length, got.failed.length, got.closed], [1, 0, [4502]]);
  });

  test('S7: a proof that the caller made itself is none of the node', async () => {
    const { socket, got } = await dialled();
    await until('the proof of the caller', () => socket.sent.length === 2);
    socket.onMessage(socket.sent[1]!);
    await until('refused', () => got.failed.length === 1);
    assertEquals([got.failed[0]?.code, got.opened.length], ['token', 0]);
  });

  test('what fails inside costs the attempt, or the connection, and never the process', async () => {
    const raw = crypto.getRandomValues(new Uint8Array(32));
    const useless = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
    const broken = await dialled({ key: useless });
    await until('failed', () => broken.got.failed.length === 1);
    assertEquals([broken.got.failed[0]?.reason, broken.got.failed[0]?.code], ['rejected', 'failed']);
    const throwing = await dialled({
      onFrame: () => {
        throw new Error('no such thing');
      },
    });
    for (const frame of [await throwing.prove(), Uint8Array.of(7)]) throwing.socket.onMessage(frame);
    await until('closed', () => throwing.got.closed.length === 1);
    assertEquals([throwing.got.failed.length, throwing.got.closed], [0, [4501]]);
  });
});
