/** The suites against a real PostgreSQL. */
import { after, before, describe, test } from 'node:test';
import { assertEquals, assertMatch, assertRejects, assertThrows } from '@std/assert';
import {
  createPostgresSchema,
  nodePg,
  openPostgresStores,
  PostgresJournal,
  type PostgresQuery,
  postgresSchemaVersion,
  type PostgresStores,
  schemaVersion,
} from '../../adapters/postgres/mod.ts';
import { limits } from '../../src/limits.ts';
import { FencedError, OptionsError } from '../../src/mod.ts';
import { StorageError } from '../../src/persistence/mod.ts';
import { durableStateContract } from './durable_state_contract.ts';
import { collect, eventsOf, journalContract, writerOf } from './journal_contract.ts';
import { connectTo, withoutPostgres } from './postgres_client.ts';
import { type PostgresServer, startPostgres } from './postgres_server.ts';
import { snapshotStoreContract } from './snapshot_store_contract.ts';

const skip = withoutPostgres;

let server: PostgresServer | undefined;
let prefixes = 0;

const connect = (max = 4): PostgresQuery => connectTo(server, { max });

/** The same client, and how many pages of events were asked of it. */
function countPages(query: PostgresQuery): { readonly query: PostgresQuery; readonly taken: () => number } {
  let pages = 0;
  return {
    query: {
      query: (text, parameters) => {
        if (/^select .* from \w+_events /s.test(text)) pages += 1;
        return query.query(text, parameters);
      },
      close: () => query.close(),
    },
    taken: () => pages,
  };
}

async function setup(keepSnapshots?: number) {
  const prefix = `t${prefixes += 1}_`;
  const options = { prefix, createSchema: true, ...(keepSnapshots === undefined ? {} : { keepSnapshots }) };
  const { query, taken } = countPages(connect());
  let stores: PostgresStores = await openPostgresStores(query, options);
  return {
    prefix,
    stores,
    taken,
    reopen: async () => {
      await stores.close();
      return stores = await openPostgresStores(connect(), options);
    },
    end: () => stores.close(),
  };
}

describe('PostgreSQL', { skip }, () => {
  before(async () => {
    if (skip === false) server = await startPostgres();
  }, { timeout: 60_000 });
  after(async () => {
    await server?.stop();
  });

  journalContract('PostgreSQL', async () => {
    const { stores, reopen, taken, end } = await setup();
    return { journal: stores.journal, reopen: async () => (await reopen()).journal, taken, end };
  }, { skip });

  durableStateContract('PostgreSQL', async () => {
    const { stores, reopen, end } = await setup();
    return { store: stores.durableState, reopen: async () => (await reopen()).durableState, end };
  }, { skip });

  snapshotStoreContract('PostgreSQL', async (keepN) => {
    const { stores, end } = await setup(keepN);
    return { store: stores.snapshots, end };
  }, { defaultKeepN: 3, skip });

  test('the schema is made by many at once, and again, and has a version', { skip }, async () => {
    const query = connect();
    const prefix = `t${prefixes += 1}_`;
    const missing = await assertRejects(() => new PostgresJournal(query, { prefix }).highestSeq('a'), StorageError);
    assertMatch(missing.message, /createPostgresSchema/);
    await Promise.all([1, 2, 3, 4].map(() => createPostgresSchema(query, prefix)));
    await createPostgresSchema(query, prefix);
    assertEquals(await postgresSchemaVersion(query, prefix), schemaVersion);
    await query.query(`insert into ${prefix}schema (version) values (99)`, []);
    await assertRejects(() => createPostgresSchema(query, prefix), StorageError, 'version 99');
    await query.close();
  });

  test('names that are no plain names are refused', () => {
    const query: PostgresQuery = { query: () => Promise.resolve([]), close: () => Promise.resolve() };
    for (const prefix of ['', 'A', 'a b', "a';", 'x'.repeat(31), 'a.b.c']) {
      assertThrows(() => new PostgresJournal(query, { prefix }), OptionsError, 'prefix');
    }
    new PostgresJournal(query, { prefix: 'app.singlet_' });
  });

  test('FB-119: of two connections that write one id, the one with the older claim is fenced in the statement', {
    skip,
  }, async () => {
    const { stores, prefix, end } = await setup();
    const other = await openPostgresStores(connect(), { prefix });
    const { writer: old } = await stores.journal.claim('a', writerOf(1));
    const writes: Promise<number>[] = [];
    let seq = 0;
    const write = async (): Promise<number> => {
      for (;;) {
        try {
          await stores.journal.append('a', eventsOf(`old ${seq + 1}`), seq, old);
          seq += 1;
        } catch (error) {
          if (!(error instanceof FencedError)) throw error;
          return seq;
        }
      }
    };
    writes.push(write());
    await new Promise((resolve) => setTimeout(resolve, 50));
    const claim = await other.journal.claim('a', writerOf(2));
    for (let next = claim.highestSeq; next < claim.highestSeq + 20; next += 1) {
      await other.journal.append('a', eventsOf(`new ${next + 1}`), next, claim.writer);
    }
    const [written = 0] = await Promise.all(writes);
    assertEquals(written, claim.highestSeq);
    const payloads = (await collect(other.journal.read('a'))).map((event) => event.payload);
    assertEquals(payloads.length, written + 20);
    assertEquals(payloads[written], `new ${written + 1}`);
    await other.close();
    await end();
  });

  test('a reader by tag never passes an event whose transaction is still open', { skip }, async () => {
    const { stores, prefix, end } = await setup();
    const slow = connect(1);
    const { writer } = await stores.journal.claim('a', writerOf(1));
    await slow.query('begin', []);
    await slow.query(`insert into ${prefix}snapshots values ('x', 1, 0, '')`, []);
    await stores.journal.append('a', [{ payload: 1, tags: ['t'] }], 0, writer);
    assertEquals(await collect(stores.journal.readByTag('t')), []);
    await slow.query('commit', []);
    assertEquals((await collect(stores.journal.readByTag('t'))).map((event) => event.payload), [1]);
    await slow.close();
    await end();
  });

  test('a claim, an append of many events, a deletion, a snapshot: one round trip each', { skip }, async () => {
    const { prefix, end } = await setup();
    const inner = connect();
    let trips = 0;
    const query: PostgresQuery = {
      query: (text, parameters) => {
        trips += 1;
        return inner.query(text, parameters);
      },
      close: () => inner.close(),
    };
    const { journal, snapshots, durableState, close } = await openPostgresStores(query, { prefix, keepSnapshots: 0 });
    const expect = async <T>(count: number, run: () => Promise<T>): Promise<T> => {
      const before = trips;
      const result = await run();
      assertEquals(trips - before, count);
      return result;
    };
    const { writer } = await expect(1, () => journal.claim('a', writerOf(1)));
    await expect(1, () => journal.append('a', Array(500).fill({ payload: 'x', tags: ['t'] }), 0, writer));
    await expect(1, () => journal.delete('a', 100));
    await expect(1, () => snapshots.save('a', { sequenceNr: 500, state: 'x', version: 0 }));
    await expect(1, () => durableState.claim('a', writerOf(1)));
    await expect(1, () => durableState.save('a', 0, { value: 1 }, writer));
    await close();
    await end();
  });

  test('pages: more events than one fetch', { skip }, async () => {
    const { stores, prefix, end } = await setup();
    const { writer } = await stores.journal.claim('a', writerOf(1));
    await stores.journal.append('a', Array(25).fill({ payload: 'x', tags: ['t'] }), 0, writer);
    // As the client is without options.
    const query = connectTo(server, { fetch_types: true });
    const paged = new PostgresJournal(query, { prefix, pageSize: 10 });
    assertEquals((await collect(paged.read('a'))).map((event) => event.sequenceNr).at(-1), 25);
    assertEquals((await collect(paged.readByTag('t'))).length, 25);
    await query.close();
    await end();
  });

  test('pages: events that are large are fetched one after the other', { skip }, async () => {
    const { stores, prefix, end } = await setup();
    const { writer } = await stores.journal.claim('a', writerOf(1));
    const sizes = [10, limits.journalPageBytes, 10, 10, limits.journalPageBytes + 10, limits.journalPageBytes + 10, 10];
    const events = sizes.map((size) => ({ payload: new Uint8Array(size), tags: ['t'] }));
    for (const [seq, event] of events.entries()) await stores.journal.append('a', [event], seq, writer);
    const { query, taken } = countPages(connect());
    const journal = new PostgresJournal(query, { prefix });
    for (const reader of [journal.read('a'), journal.readByTag('t')]) {
      const before = taken();
      const seen = (await collect(reader)).map((event) => (event.payload as Uint8Array).length);
      assertEquals(seen, sizes);
      // Each page ends with the event that fills it.
      assertEquals(taken() - before, 4);
    }
    await query.close();
    await end();
  });

  test('FB-123: a statement that the client never answers fails in time, and the next is asked', async () => {
    let asked = 0;
    const pool = {
      query: () => {
        asked += 1;
        return asked === 1 ? new Promise<never>(() => {}) : Promise.resolve({ rows: [{ one: 1 }] });
      },
      end: () => Promise.resolve(),
    };
    const query = nodePg(pool, { answerWithinMs: 20 });
    const error = await assertRejects(() => query.query('select 1', []), StorageError);
    assertMatch(error.message, /PostgreSQL: no answer within 20 ms/);
    assertEquals(await query.query('select 1', []), [{ one: 1 }]);
    assertThrows(() => nodePg(pool, { answerWithinMs: 0 }), OptionsError, 'answerWithinMs');
  });

  test('a pool of pg is taken as well', async () => {
    const seen: unknown[] = [];
    const query = nodePg({
      query: (text, parameters) => {
        seen.push([text, parameters]);
        return Promise.resolve({ rows: [{ one: 1 }] });
      },
      on: (event) => seen.push(event),
      end: () => Promise.resolve(),
    });
    assertEquals(await query.query('select $1', [1]), [{ one: 1 }]);
    // The event that a broken idle connection makes has a listener.
    assertEquals(seen, ['error', ['select $1', [1]]]);
    await query.close();
  });
});
