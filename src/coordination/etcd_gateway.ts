/** The JSON gateway of etcd v3 (POST with base64 keys, 64-bit numbers as text), over several endpoints, with log-in. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { LeaseError } from './lease.ts';
import { at, type HttpAnswer, type HttpMeans, noRedirect, readAnswer, runtimeMeans } from './http_means.ts';

export interface EtcdGatewayOptions {
  readonly endpoints: readonly string[];
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly ca: string | undefined;
  /** One endpoint is given up after this, and the next one asked. */
  readonly endpointTimeoutMs: number;
}

/** etcd's answer, in its own words. */
export class EtcdError extends LeaseError {
  readonly code: number;
  constructor(code: number, message: string) {
    super(`etcd: ${message}`);
    this.code = code;
  }
}

/** Of what a backend says about an error. */
const whyChars = 300;

/** gRPC codes. */
const invalidArgument = 3;
const notFound = 5;
const failedPrecondition = 9;
const unauthenticated = 16;

/** Its token has ended; or it is from before a change of users and roles, which ends all those that are signed. */
function refusesToken({ code, message }: EtcdError): boolean {
  return code === unauthenticated || (code === invalidArgument && /auth store is old|user name is empty/.test(message));
}

export class EtcdGateway {
  readonly #options: EtcdGatewayOptions;
  readonly #environment: Environment;
  #means: HttpMeans | undefined;
  /** The endpoint that answered last is asked first. */
  #current = 0;
  #token: string | undefined;
  /** Of the cluster that has answered first. Another one knows nothing of what was written there. */
  #cluster: { readonly id: string; readonly endpoint: string } | undefined;

  constructor(options: EtcdGatewayOptions, environment: Environment, means: HttpMeans | undefined) {
    this.#options = options;
    this.#environment = environment;
    this.#means = means;
  }

  /** The answer's body; undefined when etcd says that what was asked for does not exist. */
  async call(path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    if (this.#options.username !== undefined && this.#token === undefined) await this.#logIn(signal);
    try {
      return await this.#call(path, body, signal);
    } catch (error) {
      // Tokens of etcd end after some minutes, and with the endpoint that gave them.
      const stale = error instanceof EtcdError && refusesToken(error);
      if (!stale || this.#options.username === undefined) throw error;
      await this.#logIn(signal);
      return this.#call(path, body, signal);
    }
  }

  async #logIn(signal: AbortSignal): Promise<void> {
    const { username, password } = this.#options;
    this.#token = undefined;
    const body = await this.#call('/v3/auth/authenticate', { name: username, password }, signal);
    const token = at(body, 'token');
    if (typeof token !== 'string') throw new LeaseError('etcd: no token in the answer to the log-in');
    this.#token = token;
  }

  async #call(path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const { endpoints } = this.#options;
    let last = 'no endpoint';
    for (let step = 0; step < endpoints.length && !signal.aborted; step += 1) {
      const index = (this.#current + step) % endpoints.length;
      const endpoint = endpoints[index] ?? '';
      let answer: HttpAnswer;
      try {
        answer = await this.#post(endpoint, path, body, signal);
      } catch (error) {
        last = `${endpoint}: ${error instanceof Error ? error.message : String(error)}`;
        continue;
      }
      const trouble = this.#troubleWith(answer, endpoint);
      if (trouble === undefined) {
        this.#current = index;
        return answer.body;
      }
      if (typeof trouble === 'string') {
        last = `${endpoint}: ${trouble}`;
        continue;
      }
      if (trouble.code === notFound) return undefined;
      throw trouble;
    }
    throw new LeaseError(`etcd gave no answer (${last})`);
  }

  /** What is wrong with the question is wrong everywhere (`EtcdError`); an endpoint in trouble is not the only one. */
  #troubleWith({ status, body }: HttpAnswer, endpoint: string): EtcdError | string | undefined {
    const code = at(body, 'code') ?? at(body, 'error', 'grpc_code');
    if (code !== undefined) {
      const message = at(body, 'message') ?? at(body, 'error', 'message') ?? at(body, 'error') ?? status;
      const text = String(message).slice(0, whyChars);
      // A member that only learns, say, refuses what the others do.
      return status < 500 && Number(code) !== failedPrecondition ? new EtcdError(Number(code), text) : text;
    }
    const cluster = at(body, 'header', 'cluster_id') ?? at(body, 'result', 'header', 'cluster_id');
    if (status !== 200 || cluster === undefined) {
      return `status ${status}, and nothing that etcd 3.4 or later would say`;
    }
    this.#cluster ??= { id: String(cluster), endpoint };
    if (this.#cluster.id === String(cluster)) return undefined;
    return `it belongs to another etcd cluster than ${this.#cluster.endpoint}`;
  }

  async #post(endpoint: string, path: string, body: unknown, signal: AbortSignal): Promise<HttpAnswer> {
    const { ca, endpointTimeoutMs } = this.#options;
    this.#means ??= await runtimeMeans();
    const abort = new AbortController();
    const end = (): void => abort.abort();
    const cancel: Cancel = this.#environment.timers.set(endpointTimeoutMs, end);
    signal.addEventListener('abort', end);
    try {
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (this.#token !== undefined) headers['authorization'] = this.#token;
      const init = { method: 'POST', headers, body: JSON.stringify(body), signal: abort.signal, ...noRedirect };
      return await readAnswer(await this.#means.fetch(endpoint + path, init, ca === undefined ? undefined : { ca }));
    } catch (error) {
      if (abort.signal.aborted) throw new Error(`no answer within ${endpointTimeoutMs} ms`);
      throw error;
    } finally {
      cancel();
      signal.removeEventListener('abort', end);
    }
  }
}

/** Text as etcd takes keys and values. */
export function encode(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''));
}

export function decode(base64: unknown): string {
  if (typeof base64 !== 'string') return '';
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

/** etcd's 64-bit numbers; those left out are 0. */
export function count(value: unknown): number {
  const number = Number(value ?? 0);
  if (!Number.isSafeInteger(number)) throw new LeaseError(`etcd: ${String(value)} is not a number that can be used`);
  return number;
}
