/** What the kernel sees: on each runtime one sync of the log ends before each acknowledgement. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { assertEquals, assertGreater } from '@std/assert';
import { repositoryRoot, runtimeCommand } from '../../demo/runtime_commands.ts';

const run = promisify(execFile);
const traceable = await run('strace', ['-o', '/dev/null', 'true']).then(() => true, () => false);
const skip = traceable ? false : 'strace is not installed, or may not trace here';

/** In this order; each call begins after the one before it has ended. */
const snapshotSteps: readonly (readonly [string, RegExp])[] = [
  ['the file is synced', /fdatasync\(\d+<[^>]*\.snap\.tmp>/],
  ['it is renamed', /rename\w*\(.*\.snap\.tmp".*\.snap"/],
  ['its directory is synced', /fsync\(\d+<[^>]*\/snapshots\/id-a>/],
];

describe('file journal: traced system calls', { skip }, () => {
  for (const runtime of ['bun', 'deno', 'node'] as const) {
    test(
      `FB-116, FB-118: one sync before each acknowledgement, and a snapshot is synced, renamed, its directory synced (${runtime})`,
      { skip, timeout: 60_000 },
      async () => {
        const directory = await mkdtemp(`${tmpdir()}/singlet-trace-`);
        try {
          const { file, args } = runtimeCommand(runtime, true);
          const allowed = [`--allow-read=${directory}`, `--allow-write=${directory}`];
          const flags = args.flatMap((arg) => arg === '--allow-net' ? allowed : [arg]);
          const trace = `${directory}/trace`;
          const program = [file, ...flags, 'test/contract/fsync_writer.ts', `${directory}/stores`];
          await run('strace', [
            '-f',
            '-e',
            'trace=fsync,fdatasync,write,rename,renameat,renameat2',
            '-y',
            '-o',
            trace,
            ...program,
          ], {
            cwd: repositoryRoot,
          });
          let syncs = 0;
          let acks = 0;
          const snapshot: string[] = [];
          for (const line of (await readFile(trace, 'utf8')).split('\n')) {
            const step = snapshotSteps.find(([, pattern]) => pattern.test(line));
            if (step !== undefined) snapshot.push(step[0]);
            // A call that another thread interrupts ends in a line of its own.
            if (/fdatasync.*= 0$/.test(line)) syncs += 1;
            if (!/write\(1(?:<[^>]*>)?, "ack/.test(line)) continue;
            acks += 1;
            assertGreater(syncs, 0, `acknowledgement ${acks} without a sync before it`);
            // The first has those of the opening and of the claim as well.
            if (acks > 1) assertEquals(syncs, 1, `acknowledgement ${acks}`);
            syncs = 0;
          }
          assertEquals(acks, 20);
          assertEquals(snapshot, snapshotSteps.map(([name]) => name));
        } finally {
          await rm(directory, { recursive: true, force: true });
        }
      },
    );
  }
});
