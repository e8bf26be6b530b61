import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { allUp, Harness, statuses } from './support/node_harness.ts';

describe('joining', () => {
  test('R101: an empty seed list founds a cluster at once', async () => {
    const harness = new Harness();
    const one = await harness.add('127.0.0.1:4000', []);
    assertEquals(statuses(one), ['127.0.0.1:4000 up']);
    assertEquals(one.node.view().self.upNumber, 1);
    assert(one.node.view().converged);
  });

  test('three nodes join one after the other and are up within a few round trips', async () => {
    const harness = new Harness();
    const a = await harness.add('127.0.0.1:4000', []);
    const b = await harness.add('127.0.0.2:4000', [a.address]);
    const c = await harness.add('127.0.0.3:4000', [a.address]);
    const took = await harness.until(() => [a, b, c].every((one) => statuses(one).length === 3 && allUp(one)), 1_000);
    assert(took < 30, `took ${took} ms`);
    for (const one of [a, b, c]) {
      assertEquals(one.node.view().members.map((m) => m.upNumber).sort(), [1, 2, 3]);
      assertEquals(one.node.view().leader?.uid, a.node.uid);
    }
  });
});
