/**
 * Real processes that are killed with SIGKILL while they write, one after the other on the same directory, by turns on the
 * three runtimes. `SINGLET_KILLS` sets how often; default 60, 20 on each runtime. `npm run soak -- --what journal-kills` does it at length.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { test } from 'node:test';
import { assert, assertEquals, assertMatch } from '@std/assert';
import { Books, journalKills, Writer } from '../soak/journal_kills.ts';

const rounds = Number(process.env['SINGLET_KILLS'] ?? 60);

test(
  `FB-116, FB-119: ${rounds} times SIGKILL, and what was acknowledged is there`,
  { timeout: 60_000 + rounds * 5_000 },
  async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const result = await journalKills({ rounds, runtimes: ['bun', 'node', 'deno'], seed });
    assertEquals(result.broken, [], `seed ${seed}`);
    assert(result.acknowledged > rounds, `only ${result.acknowledged} appends`);
    assertEquals(Object.values(result.kills).reduce((sum, count) => sum + count, 0), rounds);
  },
);

for (const [first, second] of [['node', 'bun'], ['bun', 'deno'], ['deno', 'node']] as const) {
  test(
    `S5, FB-119: a writer that is stopped for too long is overtaken, and has nothing to say when it wakes (${first} to ${second})`,
    {
      timeout: 60_000,
    },
    async () => {
      const directory = await mkdtemp(`${tmpdir()}/singlet-stop-`);
      const stopped = new Writer(first, directory, 1);
      let next: Writer | undefined;
      try {
        await stopped.untilFirstAck();
        stopped.signal('SIGSTOP');
        next = new Writer(second, directory, 2);
        await next.untilFirstAck();
        stopped.signal('SIGCONT');
        assertMatch(await stopped.ended(), /in use by a later owner|no such file or directory/);
        const books = new Books();
        books.note(await stopped.kill());
        books.note(await next.kill());
        assertEquals(await books.compare(directory), []);
      } finally {
        await stopped.kill();
        await next?.kill();
        await rm(directory, { recursive: true, force: true });
      }
    },
  );
}
