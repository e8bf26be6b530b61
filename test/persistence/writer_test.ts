import { describe, test } from 'node:test';
import { assertEquals, assertThrows } from '@std/assert';
import { FencedError, OptionsError } from '../../src/mod.ts';
import { checkFence, checkWriter, decideClaim, type HeldClaim, type Writer } from '../../src/persistence/writer.ts';
import { planReplay } from '../../src/persistence/replay_check.ts';
import { everyNEvents } from '../../src/persistence/snapshot_policy.ts';

const writer = (epoch: number, uid = 'a', clusterId = 'c'): Writer => ({ epoch, uid, clusterId });

function claimed(...writers: Writer[]): HeldClaim {
  let held: HeldClaim | undefined;
  for (const one of writers) {
    const verdict = decideClaim(held, one);
    if (verdict.kind === 'fenced') throw new Error(`${one.epoch} was fenced`);
    held = verdict.claim;
  }
  return held as HeldClaim;
}

describe('claims', () => {
  test('rule 10: within one cluster (epoch, uid) decides', () => {
    const held = claimed(writer(5));
    assertEquals(decideClaim(held, writer(4)).kind, 'fenced');
    assertEquals(decideClaim(held, writer(5, 'b')).kind, 'fenced');
    assertEquals(decideClaim(held, writer(5)).kind, 'granted');
    assertEquals(claimed(writer(5), writer(6, 'b')).epoch, 6);
  });

  test("rule 10: another cluster's claim is gone above, and the distance stays", () => {
    const raised = claimed(writer(100, 'x', 'other'), writer(7));
    assertEquals([raised.epoch, raised.asked], [101, 7]);
    assertEquals(decideClaim(raised, writer(6)).kind, 'fenced');
    assertEquals(claimed(writer(100, 'x', 'other'), writer(7), writer(9, 'b')).epoch, 103);
    assertEquals(claimed(writer(3, 'x', 'other'), writer(7)).epoch, 7);
  });

  test('only the claimant passes', () => {
    const held = claimed(writer(5));
    checkFence('id', held, writer(5));
    for (const other of [writer(4), writer(6), writer(5, 'b'), writer(5, 'a', 'd')]) {
      assertThrows(() => checkFence('id', held, other), FencedError, "'id'");
    }
    assertThrows(() => checkFence('id', undefined, writer(5)), FencedError, 'claimed before');
    assertThrows(() => checkWriter(writer(1, '')), OptionsError, 'uid');
  });
});

test('R126: what is missing decides whether a replay may begin', () => {
  const history = { persistenceId: 'a', highestSeq: 10, deletedTo: 5, snapshotSeq: 5, damaged: [] };
  assertEquals(planReplay(history), { from: 5, to: 10, erased: false });
  assertThrows(() => planReplay({ ...history, snapshotSeq: 4 }), Error, 'events 5 to 5');
  assertThrows(() => planReplay({ ...history, snapshotSeq: 11 }), Error, 'ahead of the journal');
  assertThrows(() => planReplay({ ...history, snapshotSeq: NaN }), Error, 'NaN');
  assertEquals(planReplay({ ...history, deletedTo: 10, snapshotSeq: undefined }).erased, true);
});

test('R133: everyNEvents takes n > 0', () => {
  for (const n of [0, -1, 1.5, NaN]) assertThrows(() => everyNEvents(n), OptionsError, 'n');
  assertThrows(() => everyNEvents(1, { keepSnapshots: -1 }), OptionsError, 'keepSnapshots');
});
