import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { roughSize } from '../../src/actor/rough_size.ts';
import { acting, fixture } from './system_fixture.ts';

test('it grows with what a message holds, whatever holds it', () => {
  const bytes = new Uint8Array(50_000);
  for (
    const holder of [bytes, { bytes }, [bytes], new Map([['k', bytes]]), new Set([bytes]), { a: { b: [bytes.buffer] } }]
  ) {
    const size = roughSize(holder);
    assert(size >= 50_000 && size < 51_000, `${size}`);
  }
  assert(roughSize('x'.repeat(1_000)) >= 2_000);
  for (const small of [undefined, null, 1, true, 5n, Symbol('s'), () => {}, {}, new Date()]) {
    assert(roughSize(small) < 100);
  }
});

test('a part counts once; what goes round in circles ends', () => {
  const bytes = new Uint8Array(10_000);
  const circle: Record<string, unknown> = { first: bytes, second: bytes };
  circle['self'] = circle;
  assert(roughSize(circle) < 11_000);
});

test('a ref is one part, whatever it belongs to', () => {
  const { system } = fixture();
  const ref = system.spawn(acting(() => {}), 'a');
  assert(roughSize({ replyTo: ref }) < 200);
});

test('a view keeps its whole buffer', () => {
  assert(roughSize(new Uint8Array(new ArrayBuffer(9_000), 0, 1)) >= 9_000);
});

test('too many parts, and a message that resists, are without bound; no getter of it runs', () => {
  assertEquals(roughSize(Array.from({ length: 5_000 }, (_, n) => n)), Infinity);
  assertEquals(roughSize(new Map(Array.from({ length: 5_000 }, (_, n) => [n, n]))), Infinity);
  assertEquals(roughSize(new Set(Array.from({ length: 5_000 }, (_, n) => n))), Infinity);
  const deep = Array.from({ length: 60 }, () => Array.from({ length: 60 }, () => ({ a: 1 })));
  assertEquals(roughSize(deep), Infinity);
  const traps: ProxyHandler<object> = {
    ownKeys: () => {
      throw new Error('no');
    },
  };
  assertEquals(roughSize(new Proxy({}, traps)), Infinity);
  let ran = 0;
  const live = Object.defineProperty({}, 'x', { enumerable: true, get: () => ran += 1 });
  assert(roughSize(live) < 100);
  assertEquals(ran, 0);
});
