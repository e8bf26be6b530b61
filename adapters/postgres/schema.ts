/** The tables, made and changed in numbered steps. */
import { OptionsError } from '../../src/mod.ts';
import { integer, type PostgresQuery } from './query.ts';

/** One log: heads and events of ids. `journal` and `state` are two of them. An index is in the schema of its table. */
function logTables(log: string): string {
  return `
    create table ${log}_heads (
      id text collate "C" primary key, highest bigint not null, deleted_to bigint not null,
      epoch bigint not null, asked bigint not null, uid text not null, cluster_id text not null);
    create table ${log}_events (
      id text collate "C" not null, seq bigint not null, payload bytea not null, version bigint not null,
      tags text[] collate "C" not null, epoch bigint not null, uid text not null,
      xid xid8 not null default pg_current_xact_id(), ord bigint generated always as identity,
      primary key (id, seq));
    create index ${log.slice(log.indexOf('.') + 1)}_events_tags on ${log}_events using gin (tags);`;
}

/** Never changed once published: a change is a further step. */
const steps: readonly ((prefix: string) => string)[] = [
  (prefix) => `
    ${logTables(`${prefix}journal`)}
    ${logTables(`${prefix}state`)}
    create table ${prefix}snapshots (
      id text collate "C" not null, seq bigint not null, version bigint not null, state bytea not null,
      primary key (id, seq));`,
  (prefix) => `
    create table ${prefix}leases (
      name text collate "C" primary key, owner text not null, token bigint not null, previous bigint not null,
      attempt bigint not null, renewals bigint not null, ttl_ms bigint not null, renewed_at timestamptz not null,
      free boolean not null);`,
];

/** The version that this program works with. */
export const schemaVersion = steps.length;

/** Names go into statements, so they are plain. @throws OptionsError */
export function checkPrefix(prefix: string, family = 'PostgresStores'): void {
  if (typeof prefix === 'string' && /^(?:[a-z_][a-z0-9_]{0,40}\.)?[a-z_][a-z0-9_]{0,29}$/.test(prefix)) return;
  const rule = 'must be lower-case letters, digits and _, at most 30, with a schema and a dot before it if need be';
  throw new OptionsError(family, 'prefix', prefix, rule);
}

/**
 * Makes the tables, or brings those of an older version up to date. May be called by many at once, and again.
 * @throws OptionsError, StorageError
 */
export async function createPostgresSchema(query: PostgresQuery, prefix = 'singlet_'): Promise<void> {
  checkPrefix(prefix);
  const migrations = steps.map((step, index) => `
    if present < ${index + 1} then
      ${step(prefix)}
      insert into ${prefix}schema (version) values (${index + 1});
    end if;`);
  // One statement, so that it happens wholly or not at all, and one at a time.
  await query.query(
    `do $singlet$
    declare present int;
    begin
      perform pg_advisory_xact_lock(hashtext('${prefix}schema'));
      -- Who finds everything up to date needs no right to make tables.
      if to_regclass('${prefix}schema') is null then
        create table ${prefix}schema (version int primary key, made_at timestamptz not null default now());
      end if;
      select coalesce(max(version), 0) into present from ${prefix}schema;
      if present > ${schemaVersion} then
        raise exception 'the tables have version %, and this program knows ${schemaVersion}', present;
      end if;
      ${migrations.join('')}
    end $singlet$`,
    [],
  );
}

/** The version of the tables there are. @throws StorageError when there are none */
export async function postgresSchemaVersion(query: PostgresQuery, prefix = 'singlet_'): Promise<number> {
  checkPrefix(prefix);
  const [row] = await query.query(`select coalesce(max(version), 0) as version from ${prefix}schema`, []);
  return integer(row?.['version']);
}
