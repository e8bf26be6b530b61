/** The few calls to `coordination.k8s.io/v1` that a lease needs. */
import type { Environment } from '../actor/environment.ts';
import { at, type HttpAnswer, type HttpMeans, noRedirect, readAnswer, runtimeMeans } from './http_means.ts';
import { type GivenAccess, KubernetesCredentials } from './kubernetes_credentials.ts';

/** The lease object, as far as it matters here; the rest of it is kept as it is. */
export interface KubernetesRecord {
  readonly object: Readonly<Record<string, unknown>>;
  readonly resourceVersion: string;
  /** '' when nobody holds it. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly transitions: number;
  /** Ours; 0 when another kind of client made the object. */
  readonly token: number;
}

export type ApiAnswer =
  | { readonly kind: 'record'; readonly record: KubernetesRecord }
  | { readonly kind: 'missing' | 'conflict' }
  | { readonly kind: 'error'; readonly why: string; readonly retryInMs?: number };

export const tokenAnnotation = 'singlet/token';

export class KubernetesApi {
  readonly #namespace: string;
  readonly #given: GivenAccess;
  readonly #environment: Environment;
  #means: HttpMeans | undefined;
  #credentials: KubernetesCredentials | undefined;

  constructor(namespace: string, given: GivenAccess, environment: Environment, means: HttpMeans | undefined) {
    this.#namespace = namespace;
    this.#given = given;
    this.#environment = environment;
    this.#means = means;
  }

  get(name: string, signal: AbortSignal): Promise<ApiAnswer> {
    return this.#call('GET', `/${name}`, undefined, signal);
  }

  create(object: object, signal: AbortSignal): Promise<ApiAnswer> {
    return this.#call('POST', '', object, signal);
  }

  /** Refused with `conflict` unless the object still has the resourceVersion it carries. */
  replace(name: string, object: object, signal: AbortSignal): Promise<ApiAnswer> {
    return this.#call('PUT', `/${name}`, object, signal);
  }

  async #call(method: string, path: string, body: object | undefined, signal: AbortSignal): Promise<ApiAnswer> {
    let answer = await this.#send(method, path, body, signal, false);
    // The account's token is replaced from time to time.
    if (answer.status === 401) answer = await this.#send(method, path, body, signal, true);
    switch (answer.status) {
      case 200:
      case 201: {
        const record = recordOf(answer.body);
        return record ? { kind: 'record', record } : { kind: 'error', why: 'the API gave something that is no lease' };
      }
      case 404:
        // Something else than a lease is missing where one is to be made: the namespace, or the API itself.
        return at(answer.body, 'kind') === 'Status' && method !== 'POST' ? { kind: 'missing' } : refusalOf(answer);
      case 409:
        return { kind: 'conflict' };
      default:
        return refusalOf(answer);
    }
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    fresh: boolean,
  ): Promise<HttpAnswer> {
    this.#means ??= await runtimeMeans();
    this.#credentials ??= new KubernetesCredentials(this.#given, this.#means, this.#environment.clock);
    const { url, token, ca } = await this.#credentials.access(fresh);
    const headers = {
      'accept': 'application/json',
      'content-type': 'application/json',
      'authorization': `Bearer ${token}`,
    };
    const init = {
      method,
      headers,
      signal,
      ...noRedirect,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const address = `${url}/apis/coordination.k8s.io/v1/namespaces/${this.#namespace}/leases${path}`;
    return readAnswer(await this.#means.fetch(address, init, { ca }));
  }
}

function refusalOf({ status, body, retryInMs }: HttpAnswer): ApiAnswer {
  const message = at(body, 'message');
  const why = `the Kubernetes API answered ${status}${typeof message === 'string' ? `: ${message.slice(0, 300)}` : ''}`;
  return { kind: 'error', why, ...(retryInMs === undefined ? {} : { retryInMs }) };
}

function recordOf(body: unknown): KubernetesRecord | undefined {
  if (at(body, 'kind') !== 'Lease') return undefined;
  const resourceVersion = at(body, 'metadata', 'resourceVersion');
  if (typeof resourceVersion !== 'string' || resourceVersion === '') return undefined;
  return {
    object: body as Record<string, unknown>,
    resourceVersion,
    holder: String(at(body, 'spec', 'holderIdentity') ?? ''),
    durationSeconds: wholeOf(at(body, 'spec', 'leaseDurationSeconds')),
    transitions: wholeOf(at(body, 'spec', 'leaseTransitions')),
    token: wholeOf(at(body, 'metadata', 'annotations', tokenAnnotation)),
  };
}

function wholeOf(value: unknown): number {
  const number = Number(value ?? 0);
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}
