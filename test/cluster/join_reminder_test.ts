import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { JoinReminder } from '../../src/cluster/join_reminder.ts';
import { Harness } from './support/node_harness.ts';

test('a line after 3 s, then ever less often, at most once a minute', () => {
  const reminder = new JoinReminder(1_000);
  const lines: number[] = [];
  for (let now = 1_000; now <= 250_000; now += 500) {
    const forMs = reminder.due(now);
    if (forMs !== undefined) lines.push(forMs);
  }
  assertEquals(lines, [3_000, 9_000, 21_000, 45_000, 93_000, 153_000, 213_000]);
});

test('a node says what it waits for, and nothing more once it is a member', async () => {
  const harness = new Harness();
  const reminders = () =>
    harness.environment.logged.filter(({ message }) => message.startsWith('not in a cluster yet'));
  const late = await harness.add('127.0.0.2:4000', ['127.0.0.1:4000']);
  await harness.until(() => reminders().length > 0, 4_000);
  const [line] = reminders();
  assertEquals([line?.level, line?.message], ['warn', `not in a cluster yet: ${late.node.readiness()}`]);
  assertEquals(line?.fields?.['seeds'], ['127.0.0.1:4000: refused (connection refused)']);
  await harness.until(() => reminders().length === 3, 25_000);
  const waited = reminders().map(({ fields }) => Number(fields?.['forMs']));
  for (const [at, ms] of [3_000, 9_000, 21_000].entries()) {
    assert(waited[at]! >= ms && waited[at]! < ms + 2_500 * (at + 1), `waited ${waited}`);
  }
  await harness.add('127.0.0.1:4000', []);
  await harness.until(() => late.node.readiness() === undefined, 5_000);
  await harness.environment.elapse(120_000);
  assertEquals(reminders().length, 3);
});
