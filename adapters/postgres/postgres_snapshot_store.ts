/** Snapshots in PostgreSQL. */
import { limits } from '../../src/limits.ts';
import {
  checkNumber,
  checkPersistenceId,
  type Snapshot,
  type SnapshotDamage,
  type SnapshotStore,
  type SnapshotStoreOptions,
  StorageError,
} from '../../src/persistence/mod.ts';
import { Codec } from '../../src/wire/codec.ts';
import { base64 } from './base64.ts';
import { bytesOf, integer, type PostgresQuery, type Row } from './query.ts';
import { checkPrefix } from './schema.ts';

/** Options of `PostgresSnapshotStore`. All fields are optional. */
export interface PostgresSnapshotStoreOptions extends SnapshotStoreOptions {
  /** Before the name of the table; default `singlet_`. */
  readonly prefix?: string;
  readonly codec?: Codec;
}

const stateCodec = new Codec({ maxBytes: limits.snapshotBytes });

/** Snapshots as rows of a table. */
export class PostgresSnapshotStore implements SnapshotStore {
  readonly #query: PostgresQuery;
  readonly #table: string;
  readonly #codec: Codec;
  readonly #keepN: number;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  /** The client stays the caller's. `keepN` defaults to 3. @throws OptionsError */
  constructor(query: PostgresQuery, options: PostgresSnapshotStoreOptions = {}) {
    const { prefix = 'singlet_', codec = stateCodec, keepN = 3 } = options;
    checkPrefix(prefix);
    checkNumber('SnapshotStoreOptions', 'keepN', keepN);
    this.#query = query;
    this.#table = `${prefix}snapshots`;
    this.#codec = codec;
    this.#keepN = keepN;
  }

  async save(persistenceId: string, { sequenceNr, state, version }: Snapshot): Promise<void> {
    checkPersistenceId(persistenceId);
    checkNumber('Snapshot', 'sequenceNr', sequenceNr);
    checkNumber('Snapshot', 'version', version);
    await this.#run(
      `insert into ${this.#table} (id, seq, version, state)
        values ($1, $2::bigint, $3::bigint, decode($4::text, 'base64'))
        on conflict (id, seq) do update set version = excluded.version, state = excluded.state`,
      [persistenceId, sequenceNr, version, base64(this.#codec.encode(state))],
    );
    if (this.#keepN === 0) return;
    // It is saved; tidying up may fail, and the next save tries again.
    await this.#run(
      `delete from ${this.#table} where id = $1 and seq < (
        select min(seq) from (select seq from ${this.#table} where id = $1 order by seq desc limit $2::int) as kept)`,
      [persistenceId, this.#keepN],
    ).catch(() => {});
  }

  loadLatest(persistenceId: string, onDamage?: (damage: SnapshotDamage) => void): Promise<Snapshot | undefined> {
    return this.loadBefore(persistenceId, Infinity, onDamage);
  }

  async loadBefore(
    persistenceId: string,
    sequenceNr: number,
    onDamage?: (damage: SnapshotDamage) => void,
  ): Promise<Snapshot | undefined> {
    for (let below = sequenceNr;;) {
      const [row] = await this.#run(
        `select seq, version, state from ${this.#table} where id = $1 and ($2::text = '' or seq < $2::text::bigint)
          order by seq desc limit 1`,
        [persistenceId, below === Infinity ? '' : String(below)],
      );
      if (row === undefined) return undefined;
      below = integer(row['seq']);
      try {
        const state = this.#codec.decode(bytesOf(row['state']));
        return { sequenceNr: below, version: integer(row['version']), state };
      } catch (error) {
        onDamage?.({ sequenceNr: below, detail: (error as Error).message });
      }
    }
  }

  async list(persistenceId: string): Promise<readonly number[]> {
    const rows = await this.#run(`select seq from ${this.#table} where id = $1 order by seq`, [persistenceId]);
    return rows.map((row) => integer(row['seq']));
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    checkNumber('SnapshotStore', 'toSeq', toSeq);
    await this.#run(`delete from ${this.#table} where id = $1 and seq <= $2::bigint`, [persistenceId, toSeq]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#running);
  }

  #run(text: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#closed) return Promise.reject(new StorageError('the snapshot store is closed'));
    const running = this.#query.query(text, parameters);
    this.#running.add(running);
    const forget = () => void this.#running.delete(running);
    running.then(forget, forget);
    return running;
  }
}
