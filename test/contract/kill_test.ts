/**
 * Real processes that are killed with SIGKILL while they write, one after the other on the same directory, by turns on the
 * three runtimes. `SINGLET_KILLS` sets how often; default 20. `npm run soak -- --what journal-kills` does it at length.
 */
import process from 'node:process';
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { journalKills } from '../soak/journal_kills.ts';

const rounds = Number(process.env['SINGLET_KILLS'] ?? 20);

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
