import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import type { LinkClose } from '../../src/transport/contract.ts';
import type { Socket } from '../../src/transport/runtime.ts';
import type { FrameKeys } from '../../src/transport/frame_keys.ts';
import { sealBytes } from '../../src/transport/protocol.ts';
import { brokenSealCode, SealedSocket } from '../../src/transport/sealed_socket.ts';
import { importSecret } from '../../src/transport/secret_keys.ts';
import { until } from './local_environment.ts';

/** A socket that keeps what is sent; the test carries it to the other side, or not. */
class Wire implements Socket {
  readonly sent: Uint8Array[] = [];
  readonly closes: [number, string][] = [];
  takes = true;
  onMessage: (bytes: Uint8Array) => void = () => {};
  onClose: (close: LinkClose) => void = () => {};
  onDrain: () => void = () => {};

  send(bytes: Uint8Array): boolean {
    if (this.takes) this.sent.push(Uint8Array.from(bytes));
    return this.takes;
  }
  bufferedBytes(): number {
    return 0;
  }
  close(code: number, reason: string): void {
    this.closes.push([code, reason]);
  }
}

interface End {
  readonly wire: Wire;
  readonly socket: SealedSocket;
  readonly heard: number[];
  readonly closed: LinkClose[];
  drops: number;
}

const label = (text: string) => new TextEncoder().encode(text);

function endOf(keys: FrameKeys): End {
  const wire = new Wire();
  const end: End = {
    wire,
    socket: new SealedSocket(wire, keys, () => void end.drops++),
    heard: [],
    closed: [],
    drops: 0,
  };
  end.socket.onMessage = (bytes) => void end.heard.push(bytes[0] ?? -1);
  end.socket.onClose = (close) => void end.closed.push(close);
  return end;
}

async function pairOf(): Promise<{ a: End; b: End }> {
  const keys = await importSecret('a secret');
  const [one, two] = [label('one'), label('two')];
  return {
    a: endOf(await keys.frameKeys(0, { out: one, in: two })),
    b: endOf(await keys.frameKeys(0, { out: two, in: one })),
  };
}

/** What `a` has put on the wire for these frames. */
async function sealed(a: End, ...numbers: number[]): Promise<Uint8Array[]> {
  const before = a.wire.sent.length;
  for (const number of numbers) a.socket.send(Uint8Array.of(number, 1, 2, 3));
  await until('they are on the wire', () => a.wire.sent.length === before + numbers.length);
  return a.wire.sent.slice(before);
}

describe('sealed socket', () => {
  test('frames of all sizes arrive in order, whatever the background work takes', async () => {
    const { a, b } = await pairOf();
    a.wire.send = (bytes) => {
      b.wire.onMessage(Uint8Array.from(bytes));
      return true;
    };
    const sizes = [1, 500_000, 1, 0, 70_000, 3, limits.frameBytes, 2, 0, 9];
    const got: number[] = [];
    b.socket.onMessage = (bytes) => void got.push(bytes.byteLength);
    for (let round = 0; round < 10; round++) for (const size of sizes) a.socket.send(new Uint8Array(size));
    assert(a.socket.bufferedBytes() > 10 * limits.frameBytes);
    await until('all', () => got.length === 100);
    assertEquals(got, Array.from({ length: 10 }, () => sizes).flat());
    assertEquals(a.socket.bufferedBytes(), 0);
  });

  test('a close comes after the frames before it, on both sides', async () => {
    const { a, b } = await pairOf();
    for (let i = 0; i < 20; i++) a.socket.send(Uint8Array.of(i));
    a.socket.close(1000, 'done');
    assertEquals(a.wire.closes, []);
    assertEquals(a.socket.send(Uint8Array.of(99)), true);
    await until('the close', () => a.wire.closes.length === 1);
    assertEquals(a.wire.sent.length, 20);
    for (const bytes of a.wire.sent) b.wire.onMessage(bytes);
    b.wire.onClose({ code: 1000, reason: 'done', clean: true });
    assertEquals(b.closed, []);
    await until('the end', () => b.closed.length === 1);
    assertEquals(b.heard, Array.from({ length: 20 }, (_, i) => i));
  });

  const attacks: Record<string, (frames: Uint8Array[]) => readonly Uint8Array[]> = {
    'a changed frame': ([one, two, three]) => [one!, changed(two!, 0), three!],
    'a changed seal': ([one, two, three]) => [one!, changed(two!, two!.length - 1), three!],
    'a dropped frame': ([one, , three]) => [one!, three!],
    'a repeated frame': ([one, two, three]) => [one!, one!, two!, three!],
    'swapped frames': ([one, two, three]) => [one!, three!, two!],
    'an invented frame': ([one, two, three]) => [one!, new Uint8Array(40), two!, three!],
    'a frame without its seal': ([one, two, three]) => [one!, two!.slice(0, -sealBytes), three!],
    'a frame too short for a seal': ([one, two, three]) => [one!, new Uint8Array(sealBytes - 1), two!, three!],
  };
  for (const [name, attack] of Object.entries(attacks)) {
    test(`S7: ${name} ends the connection, and nothing of it or after it is handed on`, async () => {
      const { a, b } = await pairOf();
      for (const bytes of attack(await sealed(a, 10, 11, 12))) b.wire.onMessage(bytes);
      await until('the end', () => b.closed.length === 1);
      assertEquals(b.heard.filter((first, index) => first !== 10 + index), []);
      assert(b.heard.length <= 1);
      assertEquals([b.wire.closes[0]?.[0], b.closed[0]?.code, b.closed[0]?.clean], [
        brokenSealCode,
        brokenSealCode,
        false,
      ]);
      b.wire.onMessage((await sealed(a, 13))[0]!);
      b.wire.onClose({ code: 1006, reason: '', clean: false });
      assertEquals(b.closed.length, 1);
    });
  }

  test('S7: a frame sent back to its sender is no frame', async () => {
    const { a } = await pairOf();
    a.wire.onMessage((await sealed(a, 1))[0]!);
    await until('the end', () => a.closed.length === 1);
    assertEquals(a.heard, []);
  });

  test('S7: a frame of another connection under the same secret is no frame', async () => {
    const { b } = await pairOf();
    const keys = await importSecret('a secret');
    const other = endOf(await keys.frameKeys(0, { out: label('earlier'), in: label('two') }));
    b.wire.onMessage((await sealed(other, 1))[0]!);
    await until('the end', () => b.closed.length === 1);
    assertEquals(b.heard, []);
  });

  test('a frame that the runtime drops is told once, and nothing follows it', async () => {
    const { a } = await pairOf();
    await sealed(a, 1);
    a.wire.takes = false;
    for (let i = 0; i < 5; i++) a.socket.send(Uint8Array.of(i));
    await until('it is told', () => a.drops > 0);
    a.wire.takes = true;
    await until('the queue is empty', () => a.socket.bufferedBytes() === 0);
    assertEquals([a.drops, a.wire.sent.length], [1, 1]);
  });

  test('a close that waits for its frames does not wait for one that the runtime drops', async () => {
    const { a } = await pairOf();
    a.wire.takes = false;
    a.socket.send(Uint8Array.of(1));
    a.socket.close(4112, 'too slow');
    await until('it is told', () => a.drops > 0);
    assertEquals(a.wire.closes, [[4112, 'too slow']]);
  });

  test('an owner that fails on a frame loses its connection, and nothing after it is handed on', async () => {
    const { a, b } = await pairOf();
    b.socket.onMessage = ([number]) => {
      b.heard.push(number ?? -1);
      if (number === 2) throw new Error('no such thing');
    };
    for (const frame of await sealed(a, 1, 2, 3)) b.wire.onMessage(frame);
    await until('the end', () => b.closed.length === 1);
    assertEquals([b.heard, b.wire.closes], [[1, 2], [[4501, 'handler failed']]]);
    assertEquals(b.closed, [{ code: 4501, reason: 'handler failed: no such thing', clean: false }]);
  });

  test('frames that wait for their check are bounded', async () => {
    const { b } = await pairOf();
    const big = new Uint8Array(limits.frameBytes);
    for (let i = 0; i < 70; i++) b.wire.onMessage(big);
    assertEquals(b.closed.length, 1);
    assert(b.closed[0]?.reason.includes('too many'));
  });
});

function changed(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
