/** The stores a node keeps its jobs in, as its flags name them. */
import { limits } from '../src/limits.ts';
import type { Logger } from '../src/actor/environment.ts';
import type { JobStores } from './job_journal.ts';
import { withoutPassword } from './postgres_url.ts';

export type StoreChoice =
  | { readonly kind: 'journal'; readonly directory: string }
  | { readonly kind: 'postgres'; readonly url: string };

/** Longest wait for a connection; a host that cannot store should say so soon. */
const connectSeconds = 5;

/** Longest wait for an answer: what jobs store is small. */
const answerSeconds = 10;

/** So that a damaged snapshot costs nothing. */
const keepSnapshots = 2;

/** Loads what it takes. Rejects with one line when that is not there. */
export async function jobStores(choice: StoreChoice, log: Logger): Promise<() => Promise<JobStores>> {
  switch (choice.kind) {
    case 'journal': {
      const { openFileStores } = await import('../adapters/shared/file_journal/mod.ts');
      return () =>
        openFileStores(choice.directory, {
          keepSnapshots,
          segmentBytes: limits.jobSegmentBytes,
          onWarning: (message) => log.warn(message),
        });
    }
    case 'postgres':
      return await postgresStores(choice.url);
    default:
      return choice satisfies never;
  }
}

async function postgresStores(url: string): Promise<() => Promise<JobStores>> {
  const { openPostgresStores, postgresJs } = await import('../adapters/postgres/mod.ts');
  const client = await postgresClient();
  // A connection that breaks while it fetches types, which nobody here needs, would end the process.
  const options = { max: 2, connect_timeout: connectSeconds, fetch_types: false, onnotice: () => {} };
  const connect = () => postgresJs(client(url, options), { answerWithinMs: answerSeconds * 1_000 });
  // Connects to nothing yet, and shows what is wrong with the URL or with permissions.
  try {
    await connect().close();
  } catch (error) {
    throw new Error(withoutPassword(error instanceof Error ? error.message : String(error), url));
  }
  return async () => {
    const query = connect();
    try {
      return await openPostgresStores(query, { createSchema: true, keepSnapshots });
    } catch (error) {
      await query.close().catch(() => {});
      throw error;
    }
  };
}

type ClientFactory = (url: string, options: object) => Parameters<
  typeof import('../adapters/postgres/mod.ts')['postgresJs']
>[0];

/** The package is optional, also for those who check the types. */
async function postgresClient(): Promise<ClientFactory> {
  const packageName = 'postgres';
  try {
    return (await import(packageName)).default;
  } catch (error) {
    const { code, message = String(error) } = error as { code?: string; message?: string };
    const missing = code === 'ERR_MODULE_NOT_FOUND' ||
      /cannot find (package|module)|not a dependency|Import "/i.test(message);
    throw new Error(
      missing ? "needs the package 'postgres', which is not installed (npm i postgres)" : message.split('\n', 1)[0],
    );
  }
}
