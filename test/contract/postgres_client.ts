/** The client that the tests against PostgreSQL use. */
import {
  postgresJs,
  type PostgresJsClient,
  type PostgresQuery,
  type PostgresQueryOptions,
} from '../../adapters/postgres/mod.ts';
import { postgresMissing } from './postgres_server.ts';

/** The package is optional, also for those who check the types. */
const packageName = 'postgres';
const client: ((url: string, options: object) => PostgresJsClient) | undefined = await import(packageName).then(
  (module) => module.default,
  () => undefined,
);

/** Why nothing can be tested against PostgreSQL here; false when it can. */
export const withoutPostgres: string | false = client === undefined
  ? 'the package postgres is not installed'
  : await postgresMissing();

export function connectTo(
  server: { readonly url: string } | undefined,
  options: object = {},
  queryOptions: PostgresQueryOptions = {},
): PostgresQuery {
  if (client === undefined || server === undefined) throw new Error('no server');
  return postgresJs(
    client(server.url, { max: 4, fetch_types: false, backoff: () => 0.1, onnotice: () => {}, ...options }),
    queryOptions,
  );
}
