import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import fc from 'fast-check';
import { compareAddress, compareAge, compareText, splitAddress } from '../../src/cluster/member.ts';

const host = fc.constantFrom('a', 'aa-1', 'b-1', 'B', '10.0.0.10', '10.0.0.9', '[::1]', 'ä', 'z');
const address = fc.tuple(host, fc.integer({ min: 1, max: 65_535 })).map(([name, port]) => `${name}:${port}`);
const aged = fc.record({
  address,
  uid: fc.string({ minLength: 1, maxLength: 3 }),
  upNumber: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5 })),
});
const agedList = fc.array(aged, { minLength: 1, maxLength: 12 });

describe('R15: the order of members', () => {
  test('is total: antisymmetric, transitive, and equal only for the same member', () => {
    fc.assert(fc.property(aged, aged, aged, (a, b, c) => {
      assertEquals(Math.sign(compareAge(a, b)), -Math.sign(compareAge(b, a)) + 0);
      if (compareAge(a, b) <= 0 && compareAge(b, c) <= 0) assert(compareAge(a, c) <= 0);
      const same = a.address === b.address && a.uid === b.uid && a.upNumber === b.upNumber;
      assertEquals(compareAge(a, b) === 0, same);
    }));
  });

  test('does not depend on the order in which members became known', () => {
    fc.assert(fc.property(agedList, fc.infiniteStream(fc.nat(1_000)), (members, keys) => {
      const keyed = members.map((one) => ({ one, key: keys.next().value as number }));
      const shuffled = keyed.toSorted((a, b) => a.key - b.key).map(({ one }) => one);
      assertEquals(shuffled.toSorted(compareAge), members.toSorted(compareAge));
    }));
  });

  test('S4: a join never moves the oldest, whatever its address', () => {
    fc.assert(fc.property(agedList, aged, (members, joiner) => {
      const numbered = members.map((one, at) => ({ ...one, upNumber: at + 1 }));
      const [oldest] = numbered.toSorted(compareAge);
      const joining = { ...joiner, upNumber: 0 };
      const up = { ...joiner, upNumber: numbered.length + 1 };
      for (const newcomer of [joining, up]) {
        const order = [newcomer, ...numbered].toSorted(compareAge);
        assertEquals(order[0], oldest);
        assertEquals(order.at(-1), newcomer);
      }
    }));
  });

  test('a removal keeps the order of those who stay', () => {
    fc.assert(fc.property(agedList, fc.nat(11), (members, at) => {
      const order = members.toSorted(compareAge);
      const gone = order[at % order.length];
      assertEquals(members.filter((one) => one !== gone).toSorted(compareAge), order.filter((one) => one !== gone));
    }));
  });

  test('numbered members are older than unnumbered ones', () => {
    const joining = { address: 'a:1', uid: 'u', upNumber: 0 };
    assert(compareAge({ address: 'z:9', uid: 'v', upNumber: 1_000_000 }, joining) < 0);
  });

  test('equal numbers: host by code unit, then port as a number, then uid', () => {
    const order = (...addresses: string[]) => addresses.toSorted(compareAddress);
    assertEquals(order('b-1:1', 'aa-1:1'), ['aa-1:1', 'b-1:1']);
    assertEquals(order('a:1', 'B:1', 'ä:1'), ['B:1', 'a:1', 'ä:1']);
    assertEquals(order('h:10000', 'h:9999'), ['h:9999', 'h:10000']);
    assertEquals(order('[::1]:10', '[::1]:9'), ['[::1]:9', '[::1]:10']);
    assert(compareAge({ address: 'h:1', uid: 'a', upNumber: 3 }, { address: 'h:1', uid: 'b', upNumber: 3 }) < 0);
    assertEquals([compareText('a', 'b'), compareText('b', 'a'), compareText('a', 'a')], [-1, 1, 0]);
    assertEquals(splitAddress('[fe80::1]:4000'), ['[fe80::1]', 4000]);
  });
});
