import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { fastPaths } from '../../../src/fast_paths.ts';
import { GroupCommit, type Task } from '../../../src/persistence/file_journal/group_commit.ts';
import { deferred } from '../../actor/system_fixture.ts';

interface Numbered extends Task {
  readonly number: number;
}

function setup(bounds = { maxTasks: 100, maxBytes: 1_000 }) {
  const groups: number[][] = [];
  const gates: ReturnType<typeof deferred<void>>[] = [];
  const results: string[] = [];
  const commits = new GroupCommit<Numbered>(async (group) => {
    groups.push(group.map((task) => task.number));
    const gate = deferred();
    gates.push(gate);
    await gate.promise;
    return group.map(({ number }) => number % 10 === 9 ? { error: `refused ${number}` } : { value: number });
  }, bounds);
  const add = (number: number, size = 1) =>
    commits.add({
      number,
      size,
      resolve: (value) => results.push(`done ${value}`),
      reject: (error) => results.push(String(error)),
    });
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return { commits, groups, gates, results, add, settle };
}

test('what is added in one turn is one group, and what comes meanwhile is the next', async () => {
  const { commits, groups, gates, results, add, settle } = setup();
  add(1);
  add(2);
  await settle();
  add(3);
  add(9);
  add(4);
  await settle();
  assertEquals(groups, [[1, 2]]);
  assertEquals(results, []);
  gates[0]?.resolve();
  await settle();
  assertEquals(results, ['done 1', 'done 2']);
  assertEquals(groups, [[1, 2], [3, 9, 4]]);
  gates[1]?.resolve();
  await commits.idle();
  assertEquals(results.slice(2), ['done 3', 'refused 9', 'done 4']);
});

test('a failed commit fails its whole group, and no other', async () => {
  const { commits, gates, results, add, settle } = setup();
  add(1);
  add(2);
  await settle();
  add(3);
  gates[0]?.reject('disk full');
  await settle();
  gates[1]?.resolve();
  await commits.idle();
  assertEquals(results, ['disk full', 'disk full', 'done 3']);
});

test('groups are bounded in number and bytes, and a large task goes alone', async () => {
  const { commits, groups, gates, add, settle } = setup({ maxTasks: 3, maxBytes: 100 });
  for (const [number, size] of [[1, 10], [2, 10], [3, 10], [4, 500], [5, 60], [6, 60]] as const) add(number, size);
  for (let turn = 0; turn < 5; turn += 1) {
    await settle();
    gates[turn]?.resolve();
  }
  await commits.idle();
  assertEquals(groups, [[1, 2, 3], [4], [5], [6]]);
});

test('without the fast path each task is a group of its own, with the same outcomes in the same order', async () => {
  const outcomes: string[][] = [];
  for (const grouped of [true, false]) {
    fastPaths.groupCommit = grouped;
    try {
      const { commits, groups, gates, results, add, settle } = setup();
      for (const number of [1, 2, 9, 3]) add(number);
      for (let turn = 0; turn < 5; turn += 1) {
        await settle();
        gates[turn]?.resolve();
      }
      await commits.idle();
      assertEquals(groups, grouped ? [[1, 2, 9, 3]] : [[1], [2], [9], [3]]);
      outcomes.push(results);
    } finally {
      fastPaths.groupCommit = true;
    }
  }
  assertEquals(outcomes[0], ['done 1', 'done 2', 'refused 9', 'done 3']);
  assertEquals(outcomes[1], outcomes[0]);
});
