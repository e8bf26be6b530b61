import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { JoinReminder } from '../../src/cluster/join_reminder.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { Harness } from './support/node_harness.ts';

test('a warning after 3 s, then ever less often, at most once a minute, until it is stopped', async () => {
  const environment = new ManualEnvironment();
  let asked = 0;
  const reminder = new JoinReminder(environment, () => `reason ${asked += 1}`);
  reminder.start();
  await environment.elapse(2_999);
  assertEquals(environment.logged.length, 0);
  await environment.elapse(250_000);
  assertEquals(environment.logged.map(({ level, message, fields }) => [level, message, fields?.['forMs']]), [
    ['warn', 'not in a cluster yet: reason 1', 3_000],
    ['warn', 'not in a cluster yet: reason 2', 9_000],
    ['warn', 'not in a cluster yet: reason 3', 21_000],
    ['warn', 'not in a cluster yet: reason 4', 45_000],
    ['warn', 'not in a cluster yet: reason 5', 93_000],
    ['warn', 'not in a cluster yet: reason 6', 153_000],
    ['warn', 'not in a cluster yet: reason 7', 213_000],
  ]);
  reminder.stop();
  await environment.elapse(600_000);
  assertEquals(asked, 7);
});

test('a node says what it waits for, and nothing more once it is a member', async () => {
  const harness = new Harness();
  const reminders = (): string[] =>
    harness.environment.logged.map(({ message }) => message).filter((text) => text.startsWith('not in a cluster yet'));
  const late = await harness.add('127.0.0.2:4000', ['127.0.0.1:4000']);
  await harness.until(() => reminders().length > 0, 4_000);
  assertEquals(reminders(), [`not in a cluster yet: ${late.node.readiness()}`]);
  await harness.add('127.0.0.1:4000', []);
  await harness.until(() => late.node.readiness() === undefined, 5_000);
  await harness.environment.elapse(120_000);
  assertEquals(reminders().length, 1);
});
