/** How a Kubernetes API is reached: given by hand, or by the account that the pod has mounted. */
import type { Clock } from '../actor/environment.ts';
import { OptionsError } from '../actor/options.ts';
import type { HttpMeans } from './http_means.ts';
import { LeaseError } from './lease.ts';

export interface KubernetesAccess {
  readonly url: string;
  readonly token: string;
  readonly ca: string;
}

export interface GivenAccess {
  readonly apiServerUrl?: string | undefined;
  readonly authToken?: string | undefined;
  readonly caCert?: string | undefined;
}

const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet replaces the token's file long before the token ends. */
const rereadMs = 60_000;

/** @throws OptionsError unless all of them are given, or none */
export function checkAccess(family: string, given: GivenAccess): void {
  const fields = ['apiServerUrl', 'authToken', 'caCert'] as const;
  const missing = fields.filter((field) => given[field] === undefined);
  if (missing.length > 0 && missing.length < fields.length) {
    const [field = 'apiServerUrl'] = missing;
    throw new OptionsError(
      family,
      field,
      undefined,
      'must be given together with apiServerUrl, authToken and caCert, or none of them',
    );
  }
}

export class KubernetesCredentials {
  readonly #given: GivenAccess;
  readonly #means: HttpMeans;
  readonly #clock: Clock;
  #read: { readonly access: KubernetesAccess; readonly at: number } | undefined;

  constructor(given: GivenAccess, means: HttpMeans, clock: Clock) {
    this.#given = given;
    this.#means = means;
    this.#clock = clock;
  }

  /** `fresh`: what was read before has been refused. */
  async access(fresh: boolean): Promise<KubernetesAccess> {
    const { apiServerUrl, authToken, caCert } = this.#given;
    if (apiServerUrl !== undefined && authToken !== undefined && caCert !== undefined) {
      return { url: apiServerUrl.replace(/\/+$/, ''), token: authToken, ca: caCert };
    }
    const now = this.#clock.now();
    if (!fresh && this.#read && now - this.#read.at < rereadMs) return this.#read.access;
    const access = await this.#mounted();
    this.#read = { access, at: now };
    return access;
  }

  async #mounted(): Promise<KubernetesAccess> {
    const host = this.#means.environmentVariable('KUBERNETES_SERVICE_HOST');
    const port = this.#means.environmentVariable('KUBERNETES_SERVICE_PORT') ?? '443';
    if (host === undefined) {
      throw new LeaseError('not in a pod (no KUBERNETES_SERVICE_HOST): apiServerUrl, authToken and caCert are needed');
    }
    const [token, ca] = await Promise.all(
      ['token', 'ca.crt'].map((file) => this.#means.readTextFile(`${mounted}/${file}`)),
    );
    return {
      url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      token: (token ?? '').trim(),
      ca: ca ?? '',
    };
  }
}
