/** The public entry `singlet/postgres`: stores and a lease for more than one machine. Bring a client: `postgres` or `pg`. */
import { type DurableStateStore, JournalDurableState } from '../../src/persistence/mod.ts';
import type { Codec } from '../../src/wire/codec.ts';
import { PostgresJournal } from './postgres_journal.ts';
import { PostgresSnapshotStore } from './postgres_snapshot_store.ts';
import type { PostgresQuery } from './query.ts';
import { createPostgresSchema } from './schema.ts';

export { PostgresJournal, type PostgresJournalOptions } from './postgres_journal.ts';
export {
  type PostgresExpiry,
  PostgresLease,
  type PostgresLeaseSettings,
  PostgresLeaseStore,
} from './postgres_lease.ts';
export { PostgresSnapshotStore, type PostgresSnapshotStoreOptions } from './postgres_snapshot_store.ts';
export {
  nodePg,
  type NodePgPool,
  postgresJs,
  type PostgresJsClient,
  type PostgresQuery,
  type PostgresQueryOptions,
  type Row,
} from './query.ts';
export { createPostgresSchema, postgresSchemaVersion, schemaVersion } from './schema.ts';

/** Options of `openPostgresStores`. All fields are optional. */
export interface PostgresStoresOptions {
  /** Before the names of all tables, with a schema and a dot before it if need be. Default `singlet_`. */
  readonly prefix?: string;
  /** Whether to make the tables, or bring them up to date, first. Default false. */
  readonly createSchema?: boolean;
  /** Snapshots kept for each id; 0 for all. Default 3. */
  readonly keepSnapshots?: number;
  /** For classes of the user among events and states. */
  readonly codec?: Codec;
}

/** The three stores of one database. */
export interface PostgresStores {
  readonly journal: PostgresJournal;
  readonly snapshots: PostgresSnapshotStore;
  readonly durableState: DurableStateStore;
  /** Lets what is under way finish, and closes the client. */
  close(): Promise<void>;
}

/**
 * Everything persistent actors need, on one client:
 * `openPostgresStores(postgresJs(postgres(url, { fetch_types: false, backoff: () => 1 })), { createSchema: true })`.
 * @throws OptionsError, StorageError
 */
export async function openPostgresStores(
  query: PostgresQuery,
  options: PostgresStoresOptions = {},
): Promise<PostgresStores> {
  const { prefix = 'singlet_', createSchema = false, keepSnapshots, codec } = options;
  const common = { prefix, ...(codec === undefined ? {} : { codec }) };
  const journal = new PostgresJournal(query, common);
  const durableState = new JournalDurableState(new PostgresJournal(query, { ...common, log: 'state' }));
  const snapshots = new PostgresSnapshotStore(query, {
    ...common,
    ...(keepSnapshots === undefined ? {} : { keepN: keepSnapshots }),
  });
  if (createSchema) await createPostgresSchema(query, prefix);
  const close = async (): Promise<void> => {
    for (const store of [journal, durableState, snapshots]) await store.close();
    await query.close();
  };
  return { journal, snapshots, durableState, close };
}
