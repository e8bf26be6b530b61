/** Leases in PostgreSQL. */
import {
  type LeaseContext,
  type LeaseFactory,
  type LeaseSettings,
  type LeaseStore,
  type ReleaseAnswer,
  resolveLease,
  settingsFor,
  type StoreAnswer,
  StoreLease,
  type StoreRequest,
} from '../../src/coordination/mod.ts';
import { type Environment, OptionsError, realEnvironment } from '../../src/mod.ts';
import { integer, type PostgresQuery, type Row } from './query.ts';
import { checkPrefix } from './schema.ts';

/** Who decides that the term of a holder that is not heard of any more has ended. */
export type PostgresExpiry = 'observed' | 'database-clock';

/** Options of `PostgresLease`. All fields are optional. */
export interface PostgresLeaseSettings extends LeaseSettings {
  /** Before the name of the table; default `singlet_`. `createPostgresSchema` makes it. */
  readonly prefix?: string;
  /**
   * `observed` (default): the record has not changed for its term while this node looked, on this node's monotonic clock; so
   * no step of any wall clock can make two holders, and a takeover takes one term from the first look. `database-clock`: the
   * database's clock has passed the end of the term. Faster where the next owner begins to look late, and only for a server
   * whose clock is never set forward while a lease is held. All owners of a name should use the same.
   */
  readonly expiry?: PostgresExpiry;
}

const family = 'PostgresLease';
const renewalFloorMs = 100;
const conflictWaitMs = 50;
const wallMs = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** Owners are unique per process start: so are their attempts, whichever of their lease objects makes them. */
let attempts = 0;

/** How it works is said at `PostgresLease`. */
export class PostgresLeaseStore implements LeaseStore {
  readonly #query: PostgresQuery;
  readonly #table: string;
  readonly #environment: Environment;
  readonly #expiry: PostgresExpiry;
  readonly #driftBound: number;
  /** The record of another owner as it was seen, and since when, on this node's monotonic clock. */
  #seen:
    | { readonly token: number; readonly renewals: number; readonly at: number; readonly ended: boolean }
    | undefined;

  constructor(
    query: PostgresQuery,
    prefix: string,
    environment: Environment,
    expiry: PostgresExpiry,
    driftBound: number,
  ) {
    this.#query = query;
    this.#table = `${prefix}leases`;
    this.#environment = environment;
    this.#expiry = expiry;
    this.#driftBound = driftBound;
  }

  async acquire(request: StoreRequest): Promise<StoreAnswer> {
    const attempt = attempts += 1;
    let answer = await this.#take(request, attempt);
    // What was seen may have become old enough at this very look.
    if (answer.kind === 'held' && this.#seen?.ended) answer = await this.#take(request, attempt);
    if (answer.kind === 'granted') this.#seen = undefined;
    return answer;
  }

  async #take({ name, owner, ttlMs, signal, above = 0 }: StoreRequest, attempt: number): Promise<StoreAnswer> {
    const ended = this.#seen?.ended === true ? this.#seen : undefined;
    const [row] = await this.#run(
      signal,
      `with taken as (
        insert into ${this.#table} as l (name, owner, token, previous, attempt, renewals, ttl_ms, renewed_at, free)
          values ($1::text, $2::text, greatest(${wallMs}, $8::bigint), 0, $4::bigint, 0, $3::bigint, clock_timestamp(), false)
          on conflict (name) do update set owner = excluded.owner, token = greatest(l.token + 1, ${wallMs}, $8::bigint),
            previous = l.token, attempt = excluded.attempt, renewals = 0, ttl_ms = excluded.ttl_ms,
            renewed_at = clock_timestamp(), free = false
          where case when l.owner = excluded.owner then l.attempt < excluded.attempt
            else l.free or (l.token = $5::bigint and l.renewals = $6::bigint)
              or ($7::boolean and clock_timestamp() >= l.renewed_at + l.ttl_ms * interval '1 millisecond') end
          returning token, previous)
      select true as granted, token, previous, null as owner, 0 as renewals, 0 as ttl_ms, 0 as left_ms from taken
      union all
      select false, token, previous, owner, renewals, ttl_ms, ceil(extract(epoch from
          renewed_at + ttl_ms * interval '1 millisecond' - clock_timestamp()) * 1000)::bigint
        from ${this.#table} where name = $1::text and not exists (select from taken)`,
      [
        name,
        owner,
        Math.ceil(ttlMs),
        attempt,
        ended?.token ?? -1,
        ended?.renewals ?? -1,
        this.#expiry === 'database-clock',
        above + 1,
      ],
    );
    if (row === undefined || row['owner'] === owner) {
      return { kind: 'error', why: 'the record changed meanwhile', retryInMs: conflictWaitMs };
    }
    if (row['granted'] !== true) return this.#held(row);
    const previous = integer(row['previous']);
    return { kind: 'granted', token: integer(row['token']), ...(previous > 0 ? { previous } : {}) };
  }

  #held(row: Row): StoreAnswer {
    const now = this.#environment.clock.now();
    const [token, renewals] = [integer(row['token']), integer(row['renewals'])];
    const known = this.#seen?.token === token && this.#seen.renewals === renewals ? this.#seen : undefined;
    const at = known?.at ?? now;
    const left = at + integer(row['ttl_ms']) * (1 + 2 * this.#driftBound) - now;
    this.#seen = { token, renewals, at, ended: left <= 0 };
    const byClock = this.#expiry === 'database-clock' ? integer(row['left_ms']) : Infinity;
    return { kind: 'held', by: String(row['owner']), expiresInMs: Math.max(1, Math.ceil(Math.min(left, byClock))) };
  }

  async renew({ name, owner, token, ttlMs, signal }: StoreRequest & { readonly token: number }): Promise<StoreAnswer> {
    const [row] = await this.#run(
      signal,
      `update ${this.#table} set renewals = renewals + 1, ttl_ms = $4::bigint, renewed_at = clock_timestamp()
        where name = $1::text and owner = $2::text and token = $3::bigint and not free returning token`,
      [name, owner, token, Math.ceil(ttlMs)],
    );
    return row === undefined ? { kind: 'held' } : { kind: 'granted', token: integer(row['token']) };
  }

  async release({ name, owner, signal }: StoreRequest): Promise<ReleaseAnswer> {
    await this.#run(
      signal,
      `update ${this.#table} set free = true, attempt = $3::bigint
        where name = $1::text and owner = $2::text and attempt < $3::bigint`,
      [name, owner, attempts += 1],
    );
    return { kind: 'released' };
  }

  #run(signal: AbortSignal, text: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
    if (signal.aborted) return Promise.reject(new Error('given up'));
    return this.#query.query(text, parameters);
  }
}

/**
 * A lease as a row of a table. Each request is one statement, so that the database decides between any number of owners. The
 * token is the database's wall clock in milliseconds, and always at least one above the tenure before, so it also grows over
 * a table that was made anew, and where that clock is set back. A release keeps the row. Each statement carries the number of
 * its attempt: one that comes late, from a pool's queue or a slow network, changes nothing that a later one of its owner did.
 * `expiry` says how a dead holder is noticed. Give it a client that is not kept busy by other statements.
 */
export class PostgresLease extends StoreLease {
  /** The client stays the caller's. @throws OptionsError naming the field */
  constructor(
    query: PostgresQuery,
    settings: PostgresLeaseSettings,
    environment: Environment = realEnvironment(),
  ) {
    const { prefix = 'singlet_', expiry = 'observed', ...lease } = checked(settings);
    const config = resolveLease(family, lease, renewalFloorMs);
    super(new PostgresLeaseStore(query, prefix, environment, expiry, config.driftBound), config, environment);
  }

  /** For `StartSingletonOptions.lease`: owner, and the name unless it is given, are the singleton's. */
  static factory(query: PostgresQuery, settings: Omit<PostgresLeaseSettings, 'owner'>): LeaseFactory {
    checked(settings);
    return (context: LeaseContext) =>
      new PostgresLease(
        query,
        settingsFor(context, settings),
        context.environment,
      );
  }
}

function checked(settings: PostgresLeaseSettings): PostgresLeaseSettings {
  const { prefix = 'singlet_', expiry = 'observed' } = settings;
  checkPrefix(prefix, family);
  if (expiry !== 'observed' && expiry !== 'database-clock') {
    throw new OptionsError(family, 'expiry', expiry, "must be 'observed' or 'database-clock'");
  }
  return settings;
}
