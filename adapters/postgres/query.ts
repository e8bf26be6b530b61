/** What the stores need of a PostgreSQL client, and how the clients people have give it. */
import { limits } from '../../src/limits.ts';
import { checkNumber, StorageError } from '../../src/persistence/mod.ts';

/** A row of an answer, by column. */
export type Row = Readonly<Record<string, unknown>>;

/** Any client that sends one statement and gives its rows. `bytea` arrives as bytes, `bigint` as text or number. */
export interface PostgresQuery {
  query(text: string, parameters: readonly unknown[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** As much of the client of the package `postgres` as is used here. */
export interface PostgresJsClient {
  unsafe(text: string, parameters?: any[], options?: { readonly prepare?: boolean }): PromiseLike<readonly any[]>;
  end(options?: { readonly timeout?: number }): Promise<void>;
}

/** As much of a pool of the package `pg` as is used here. */
export interface NodePgPool {
  query(text: string, parameters: any[]): Promise<{ readonly rows: readonly any[] }>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}

/** How long a client may take. */
export interface PostgresQueryOptions {
  /**
   * A statement that has no answer by then has failed, and what became of it is unknown: clients lose one now and then when a
   * server restarts, and whoever waits for it would wait for ever. Default `limits.databaseAnswerMs`, one minute.
   */
  readonly answerWithinMs?: number;
}

/**
 * The client of the package `postgres`: `postgresJs(postgres(url, { fetch_types: false, backoff: () => 1 }))`. Runs on Bun, Deno
 * and Node. With `fetch_types` (its default) a connection that breaks at its very beginning rejects a promise that nobody can
 * handle, and that ends the process; nothing here needs those types. Its default of `backoff` makes pauses of up to 20 s while a
 * server is away.
 */
export function postgresJs(client: PostgresJsClient, options: PostgresQueryOptions = {}): PostgresQuery {
  return wrap(
    async (text, parameters) => await client.unsafe(text, [...parameters], { prepare: true }),
    // The stores have waited for their statements; this is for connections that do not close.
    () => client.end({ timeout: 1 }),
    options,
  );
}

/** A pool of the package `pg`: `nodePg(new Pool(…))`. */
export function nodePg(pool: NodePgPool, options: PostgresQueryOptions = {}): PostgresQuery {
  // Of connections that break while nobody uses them. Without a listener the event ends the process.
  pool.on?.('error', () => {});
  return wrap(async (text, parameters) => (await pool.query(text, [...parameters])).rows, () => pool.end(), options);
}

function wrap(
  query: PostgresQuery['query'],
  close: () => Promise<void>,
  { answerWithinMs = limits.databaseAnswerMs }: PostgresQueryOptions,
): PostgresQuery {
  checkNumber('PostgresQueryOptions', 'answerWithinMs', answerWithinMs, 1);
  return {
    async query(text, parameters) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer within ${answerWithinMs} ms`)), answerWithinMs);
      });
      try {
        return await Promise.race([query(text, parameters), late]);
      } catch (error) {
        throw databaseError(error);
      } finally {
        clearTimeout(timer);
      }
    },
    close,
  };
}

function databaseError(error: unknown): StorageError {
  const { code, message } = error as { code?: string; message?: string };
  const missing = code === '42P01' ? ' (were the tables made? call createPostgresSchema once)' : '';
  return new StorageError(`PostgreSQL: ${message ?? String(error)}${missing}`, code, error);
}

/** A `bigint` column as a number: sequence numbers and epochs are safe integers. */
export function integer(value: unknown): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new StorageError(`PostgreSQL gave ${String(value)} for a number`);
  return number;
}

/** A copy that is a plain `Uint8Array`. */
export function bytesOf(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new StorageError('PostgreSQL gave no bytes');
  return new Uint8Array(value);
}
