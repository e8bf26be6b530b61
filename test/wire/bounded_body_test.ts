import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { readBounded } from '../../src/wire/bounded_body.ts';

/** A body that comes in these pieces, and what was asked of it. */
function bodyOf(pieces: Iterable<Uint8Array>) {
  const asked = { pieces: 0, cancelled: false };
  const source = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const next = source.next();
      if (next.done) return controller.close();
      asked.pieces++;
      controller.enqueue(next.value);
    },
    cancel() {
      asked.cancelled = true;
    },
  });
  return { body, asked };
}

function* pieces(count: number, size: number) {
  for (let n = 0; n < count; n++) yield new Uint8Array(size).fill(n & 255);
}

test('a body is what its pieces are, in order, and none is nothing', async () => {
  const { body } = bodyOf([Uint8Array.of(1, 2), new Uint8Array(0), Uint8Array.of(3)]);
  assertEquals(await readBounded(body, 10), Uint8Array.of(1, 2, 3));
  assertEquals(await readBounded(null, 10), new Uint8Array(0));
});

test('a body up to the limit is read; of one beyond it no more is asked for, and the rest is refused', async () => {
  assertEquals((await readBounded(bodyOf(pieces(10, 100)).body, 1_000))?.length, 1_000);
  const { body, asked } = bodyOf(pieces(1_000, 100));
  assertEquals(await readBounded(body, 999), undefined);
  assert(asked.cancelled);
  assert(asked.pieces <= 12, String(asked.pieces));
});

test('S7: a body in as many pieces as it has bytes is given up early; one in pieces of a network is not', async () => {
  const { body, asked } = bodyOf(pieces(1_000_000, 1));
  assertEquals(await readBounded(body, 1_000_000), undefined);
  assert(asked.pieces <= limits.bodyPieces + 10, String(asked.pieces));
  const mebibyte = 2 ** 20;
  const whole = await readBounded(bodyOf(pieces(mebibyte / 512, 512)).body, mebibyte);
  assertEquals(whole?.length, mebibyte);
  const empty = bodyOf(pieces(1_000_000, 0));
  assertEquals(await readBounded(empty.body, 10), undefined);
});
