/** Each example runs on each runtime with nothing but its command, and says what it should. */
import { execFile } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { assertEquals } from '@std/assert';
import { runtimeCommand } from '../../demo/runtime_commands.ts';
import { runtimes } from './cluster_process.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const expected: Readonly<Record<string, readonly string[]>> = {
  spawn_from_any_node: ['granted: true, true, false by one host: true', 'moved: true'],
  rate_budget: ['within the budget: true used up: true refused: true'],
  connection_owner: ['answered: true calls: 2 at once: 1', 'each line once: true'],
  saga_coordinator: ['to-the-sea: booked to-a-full-hotel: cancelled', 'hosts: 2'],
  find_a_bug: [
    'moves: no rule broken in 5 seeds',
    'crashes: seed 1: tickets: ticket 1 was given twice after: crash of n1',
    'crashes, fixed: no rule broken in 5 seeds',
  ],
  chat_room: ['both hear Ada: true', 'both hear Bob after the move: true'],
  scheduled_task: ['runs: true hosts: 2 each due time once: true'],
};

/** What an example needs on Deno besides the network, as its own head says. */
const denoPermissions: Readonly<Record<string, readonly string[]>> = {
  saga_coordinator: ['--allow-read', '--allow-write'],
  chat_room: ['--allow-read'],
};

for (const [name, lines] of Object.entries(expected)) {
  describe(name, { concurrency: runtimes.length }, () => {
    for (const runtime of runtimes) {
      test(`on ${runtime}`, async () => {
        const { file, args } = runtimeCommand(runtime, true);
        const permissions = runtime === 'deno' ? denoPermissions[name] ?? [] : [];
        const program = [...args, ...permissions, `examples/${name}.ts`];
        const { stdout } = await run(file, program, { cwd: root, timeout: 60_000 });
        assertEquals(stdout.trim().split('\n'), lines);
      });
    }
  });
}
