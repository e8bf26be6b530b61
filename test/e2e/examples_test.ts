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
  scheduled_task: ['runs: true hosts: 2 each due time once: true'],
};

for (const [name, lines] of Object.entries(expected)) {
  describe(name, () => {
    for (const runtime of runtimes) {
      test(`on ${runtime}`, async () => {
        const { file, args } = runtimeCommand(runtime, true);
        const { stdout } = await run(file, [...args, `examples/${name}.ts`], { cwd: root, timeout: 60_000 });
        assertEquals(stdout.trim().split('\n'), lines);
      });
    }
  });
}
