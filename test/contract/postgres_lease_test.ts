/** The lease suite against a real PostgreSQL, and what is PostgreSQL's own. */
import { after, before, describe, test } from 'node:test';
import { assert, assertEquals, assertGreater, assertLess, assertRejects, assertThrows } from '@std/assert';
import {
  createPostgresSchema,
  PostgresLease,
  type PostgresLeaseSettings,
  PostgresLeaseStore,
  type PostgresQuery,
  postgresSchemaVersion,
  schemaVersion,
} from '../../adapters/postgres/mod.ts';
import { consoleLogger, OptionsError, realEnvironment } from '../../src/mod.ts';
import { type LeaseBench, leaseContract } from './lease_contract.ts';
import { connectTo, withoutPostgres } from './postgres_client.ts';
import { type PostgresServer, startPostgres } from './postgres_server.ts';

const skip = withoutPostgres;
const ttlMs = 600;
const environment = realEnvironment(consoleLogger('off'));
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

let server: PostgresServer | undefined;
let shared: PostgresQuery | undefined;

const connect = (max = 4): PostgresQuery => connectTo(server, { max });

function query(): PostgresQuery {
  if (shared === undefined) throw new Error('no server');
  return shared;
}

/** Statements that fail for one owner, or whose rows are lost, or that come late. */
class Wire implements PostgresQuery {
  broken = false;
  muted = false;
  readonly texts: string[] = [];
  async query(text: string, parameters: readonly unknown[]) {
    this.texts.push(text);
    if (this.broken) throw new Error('connection refused');
    const rows = await query().query(text, parameters);
    if (this.muted) throw new Error('connection reset');
    return rows;
  }
  close = () => Promise.resolve();
}

class PostgresBench implements LeaseBench {
  readonly ttlMs = ttlMs;
  readonly #wires = new Map<string, Wire>();
  readonly #leases: PostgresLease[] = [];
  open(name: string, owner: string): PostgresLease {
    const wire = new Wire();
    this.#wires.set(owner, wire);
    const lease = new PostgresLease(wire, { name, owner, ttlMs }, environment);
    this.#leases.push(lease);
    return lease;
  }
  elapse = sleep;
  settle = <T>(promise: Promise<T>) => promise;
  now = () => environment.clock.now();
  breakFor(owner: string | undefined): void {
    for (const [name, wire] of this.#wires) wire.broken = name === owner;
  }
  muteFor(owner: string | undefined): void {
    for (const [name, wire] of this.#wires) wire.muted = name === owner;
  }
  close(): Promise<void> {
    for (const lease of this.#leases) lease.abandon();
    return Promise.resolve();
  }
}

const made = (settings: Partial<PostgresLeaseSettings>) =>
  new PostgresLease(query(), { ttlMs, name: 'x', owner: 'a#1', ...settings }, environment);

describe('PostgreSQL leases', { skip }, () => {
  before(async () => {
    if (skip !== false) return;
    server = await startPostgres();
    shared = connect();
    await createPostgresSchema(shared);
  }, { timeout: 60_000 });
  after(async () => {
    await shared?.close();
    await server?.stop();
  });

  leaseContract({ title: 'PostgreSQL', skip, bench: () => Promise.resolve(new PostgresBench()), slackMs: 300 });

  const scene = (name: string, run: () => Promise<void>) => test(name, { skip }, run);
  const store = (expiry: 'observed' | 'database-clock' = 'observed') =>
    new PostgresLeaseStore(query(), 'singlet_', environment, expiry, 0);
  const { signal } = new AbortController();
  const setClock = (name: string, by: string) =>
    query().query(`update singlet_leases set renewed_at = renewed_at + $2::text::interval where name = $1`, [name, by]);

  scene(
    'R78: tokens are wall milliseconds, grow over a table made anew, and where that clock is set back',
    async () => {
      const [a, b] = [made({ name: 'tokens' }), made({ name: 'tokens', owner: 'b#1' })];
      const before = Date.now();
      const first = await a.acquireWithToken();
      assert(first && first.token >= before - 1_000 && first.previous === undefined);
      await a.release();
      await query().query(`update singlet_leases set token = token + 3600000 where name = 'tokens'`, []);
      const second = await b.acquireWithToken();
      assert(second);
      assertEquals([second.token, second.previous], [first.token + 3_600_001, first.token + 3_600_000]);
      await b.release();
      await query().query(`delete from singlet_leases where name = 'tokens'`, []);
      const third = await a.acquireWithToken();
      assert(third && third.token > first.token);
      await a.release();
    },
  );

  scene('S1: of twenty that ask at once one gets it, again and again', async () => {
    const pool = connect(10);
    try {
      let last = 0;
      for (let round = 0; round < 5; round += 1) {
        const stores = Array.from(
          { length: 20 },
          () => new PostgresLeaseStore(pool, 'singlet_', environment, 'observed', 0),
        );
        const answers = await Promise.all(
          stores.map((one, n) => one.acquire({ name: 'crowd', owner: `${round}/${n}`, ttlMs: 60_000, signal })),
        );
        const granted = answers.flatMap((answer, n) => answer.kind === 'granted' ? [{ ...answer, n }] : []);
        assertEquals(granted.length, 1);
        assertGreater(granted[0]!.token, last);
        last = granted[0]!.token;
        await stores[0]!.release({ name: 'crowd', owner: `${round}/${granted[0]!.n}`, ttlMs, signal });
      }
    } finally {
      await pool.close();
    }
  });

  scene('S1: a step of the database clock makes no second holder; a clock set back holds nobody up', async () => {
    const [a, b] = [made({ name: 'steps', ttlMs: 1_200 }), made({ name: 'steps', owner: 'b#1' })];
    assert(await a.acquire());
    // As if the clock had been set forward by an hour.
    await setClock('steps', '-1 hour');
    assertEquals(await b.acquire(), false);
    assert(a.checkAlive());
    a.abandon();
    await setClock('steps', '2 hours');
    for (const until = environment.clock.now() + 4_000; !(await b.acquire());) {
      assertLess(environment.clock.now(), until);
      await sleep(b.retryInMs ?? 50);
    }
    await b.release();
  });

  scene("expiry 'database-clock': the first look of a late comer is enough, and a live term is respected", async () => {
    const [a, b] = [made({ name: 'clock' }), made({ name: 'clock', owner: 'b#1', expiry: 'database-clock' })];
    assert(await a.acquire());
    assertEquals(await b.acquire(), false);
    assert(b.retryInMs! > 0 && b.retryInMs! <= ttlMs + 10);
    a.abandon();
    await sleep(ttlMs + 20);
    const late = made({ name: 'clock', owner: 'c#1', expiry: 'database-clock' });
    assert(await late.acquire());
    await late.release();
  });

  scene('FB-050: what comes late changes nothing that a later request of its owner did', async () => {
    const held: (() => void)[] = [];
    const queue: PostgresQuery = {
      query: async (text, parameters) => {
        await new Promise<void>((resolve) => held.push(resolve));
        return await query().query(text, parameters);
      },
      close: () => Promise.resolve(),
    };
    const request = { name: 'late', owner: 'a#1', ttlMs: 60_000, signal };
    const slow = new PostgresLeaseStore(queue, 'singlet_', environment, 'observed', 0);
    const [lateAcquire, lateRelease] = [slow.acquire(request), slow.release(request)];
    const granted = await store().acquire(request);
    assert(granted.kind === 'granted');
    for (const run of held.splice(0)) run();
    assertEquals([(await lateAcquire).kind, (await lateRelease).kind], ['error', 'released']);
    assertEquals(await store().renew({ ...request, token: granted.token }), { kind: 'granted', token: granted.token });
    const again = slow.acquire(request);
    await store().release(request);
    for (const run of held.splice(0)) run();
    assertEquals((await again).kind, 'error', 'an acquire that was overtaken by a release');
    assertEquals((await store().acquire({ ...request, owner: 'b#1' })).kind, 'granted');
  });

  scene('FB-050: a request that is given up is not sent', async () => {
    const wire = new Wire();
    const given = new PostgresLeaseStore(wire, 'singlet_', environment, 'observed', 0);
    await assertRejects(() => given.acquire({ name: 'x', owner: 'a', ttlMs, signal: AbortSignal.abort() }), Error);
    assertEquals(wire.texts, []);
  });

  scene('connections that the server ends are a hiccup, not a loss', async () => {
    const lease = made({ name: 'hiccup', ttlMs: 1_200 });
    const reasons: string[] = [];
    lease.onLost((why) => reasons.push(why));
    assert(await lease.acquire());
    const killer = connect(1);
    await killer.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`,
      [],
    );
    await killer.close();
    await sleep(1_400);
    assertEquals([lease.checkAlive(), reasons], [true, []]);
    await lease.release();
  });

  scene('tables of the version before leases are brought up to date', async () => {
    const prefix = 'older_';
    await createPostgresSchema(query(), prefix);
    await query().query(`drop table ${prefix}leases`, []);
    await query().query(`delete from ${prefix}schema where version > 1`, []);
    assertEquals(await postgresSchemaVersion(query(), prefix), 1);
    await assertRejects(() => made({ prefix }).acquire(), Error, 'createPostgresSchema');
    await createPostgresSchema(query(), prefix);
    assertEquals(await postgresSchemaVersion(query(), prefix), schemaVersion);
    const lease = made({ prefix });
    assert(await lease.acquire());
    await lease.release();
  });

  scene('a term of a fraction of a millisecond is granted and renewed like any other', async () => {
    const lease = made({ ttlMs: 999.5 });
    assert(await lease.acquire());
    const { deadline } = lease;
    await sleep(600);
    assertGreater(lease.deadline, deadline);
    await lease.release();
  });
});

test('R77: bad settings are refused', () => {
  const none: PostgresQuery = { query: () => Promise.resolve([]), close: () => Promise.resolve() };
  const bad: [PostgresLeaseSettings, string][] = [
    [{ name: undefined as never }, 'PostgresLease.name: is required'],
    [{ prefix: 'a b' }, 'PostgresLease.prefix'],
    [{ expiry: 'soon' as never }, "PostgresLease.expiry: must be 'observed' or 'database-clock'"],
    [{ ttlMs: 5 }, 'PostgresLease.ttlMs'],
    [{ endpoints: [] } as never, 'PostgresLease.endpoints'],
  ];
  for (const [change, message] of bad) {
    const settings = { name: 'x', owner: 'a', ttlMs, ...change };
    assertThrows(() => new PostgresLease(none, settings, environment), OptionsError, message);
  }
  assertThrows(() => PostgresLease.factory(none, { ttlMs, expiry: 'soon' as never }), OptionsError, 'expiry');
});
