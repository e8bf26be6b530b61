/** The soak tests of `npm run soak`, short: real processes on three runtimes under a moderate load. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { soak, type SoakOptions, type TestName } from '../soak/rounds.ts';

const common = { rate: 1_500, runtimes: ['bun', 'deno', 'node'] } as const;

async function run(name: TestName, options: Pick<SoakOptions, 'rounds' | 'seed'>): Promise<void> {
  const result = await soak(name, { ...common, ...options });
  console.log(result.lines.map((line) => `# ${line}`).join('\n'));
  assertEquals(result.broken, [], result.lines.join('\n'));
  for (const { sender, handled } of result.accounts) assert(handled > 0, `sender ${sender} has reached nobody`);
}

describe('soak, short', () => {
  test('S3, R28, R140: planned moves under load: nothing lost, doubled or reordered, from any runtime to any', () =>
    run('moves', { rounds: 18, seed: 1 }));

  test('S3, R139: SIGKILLs of the host under load: every message is accounted for, none handled twice', () =>
    run('kills', { rounds: 4, seed: 2 }));

  test('S1: leaves, kills and joins at random: an observer outside never sees two at once', () =>
    run('churn', { rounds: 12, seed: 3 }));
});
