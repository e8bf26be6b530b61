/** Options of the WebSocket transport and the rules they must meet. */
import type { Environment } from '../actor/environment.ts';
import { formatAddress, isHost, isLoopbackHost, isWildcardHost } from './address.ts';
import type { SeedAnswer } from './contract.ts';
import { TransportOptionsError } from './errors.ts';
import { helloProblem } from './hello.ts';
import type { ClientTls, Runtime, TlsOptions, UpgradeEndpoint } from './runtime.ts';
import type { Secret } from './secret_keys.ts';

export type FetchHandler = (request: Request) => Response | Promise<Response>;

export interface WebSocketTransportOptions {
  readonly runtime: Runtime;
  readonly environment: Environment;
  readonly clusterName: string;
  /** The host other nodes dial. Never a wildcard. */
  readonly host: string;
  /** Where to listen; default: `host`. */
  readonly bindHost?: string;
  /** Where to listen; 0 takes a free port, which `start` returns. */
  readonly port: number;
  /** The port other nodes dial, where a forwarder stands in between; default: the bound one. */
  readonly advertisedPort?: number;
  /** Random per process start. */
  readonly uid: string;
  readonly roles?: readonly string[];
  /** Shared by all nodes of the cluster. Without one, only loopback addresses are allowed. */
  readonly secret?: Secret;
  /** Allows routable addresses without a secret: anyone who can connect may then join. Default false. */
  readonly insecure?: boolean;
  /**
   * Seals every frame, so that nobody on the path can change, drop or repeat one: see `sealed_socket.ts`. A link is sealed
   * when either of its nodes asks for it. Needs a secret; not with TLS, which does this and more. Default false.
   */
  readonly frameIntegrity?: boolean;
  /** With it every node of the cluster speaks TLS. */
  readonly tls?: TlsOptions;
  /** Serves every request but the upgrade; default: `GET /cluster/seed` only. See also `setFetch`. */
  readonly fetch?: FetchHandler;
  readonly seedAnswer: () => SeedAnswer;
  /** Other takers of upgrades on this port; they end with the listener. */
  readonly endpoints?: readonly UpgradeEndpoint[];
  /** False for a node that dials and cannot be dialled; it advertises port 0. Default true. */
  readonly listen?: boolean;
  /** Accepts a dialled peer under whatever address it advertises, for callers behind a forwarder. Default false. */
  readonly acceptAnyAddress?: boolean;
}

/** The options after validation, with defaults filled in. */
export interface CheckedOptions extends WebSocketTransportOptions {
  readonly bindHost: string;
  readonly roles: readonly string[];
}

/** Throws a `TransportOptionsError` for the first rule that is broken. */
export function checkOptions(options: WebSocketTransportOptions): CheckedOptions {
  const { host, port, listen = true } = options;
  const bindHost = options.bindHost ?? (host.toLowerCase() === 'localhost' ? loopback : host);
  const roles = options.roles ?? [];
  const bad = (field: string, value: unknown, rule: string): never => {
    throw new TransportOptionsError(field, value, rule);
  };
  if (isWildcardHost(host)) bad('host', host, 'other nodes cannot dial a wildcard; name one address, and use bindHost');
  if (!isHost(host)) bad('host', host, 'must be a host name or an IP address (IPv6 without brackets)');
  if (!isWildcardHost(bindHost) && !isHost(bindHost)) bad('bindHost', bindHost, 'must be a host name or an IP address');
  checkPort('port', port);
  if (options.advertisedPort !== undefined) checkPort('advertisedPort', options.advertisedPort);
  checkSecret(options.secret);
  if (options.tls !== undefined) checkTls(options.tls, options.runtime);
  if (options.frameIntegrity === true && options.secret === undefined) {
    bad('frameIntegrity', true, 'needs a secret, from which its keys are derived');
  }
  if (options.frameIntegrity === true && options.tls !== undefined) {
    bad('frameIntegrity', true, 'is not for links with TLS, which protects every frame already');
  }
  const problem = helloProblem({
    clusterName: options.clusterName,
    uid: options.uid,
    roles,
    runtime: options.runtime.name,
    address: formatAddress(host, port),
  });
  if (problem !== undefined) {
    const field = problem.startsWith('cluster') ? 'clusterName' : problem.startsWith('uid') ? 'uid' : 'roles';
    bad(field, options[field], problem);
  }
  if (listen && options.secret === undefined && options.insecure !== true) {
    const rule = 'reachable from other machines, so a secret is needed (or insecure: true, which lets anybody join)';
    if (!isLoopbackHost(host)) bad('host', host, rule);
    if (!isLoopbackHost(bindHost)) bad('bindHost', bindHost, rule);
  }
  return { ...options, bindHost, roles };
}

/** `localhost` may mean 127.0.0.1 or ::1 and so two different listeners; here it always means this one. */
const loopback = '127.0.0.1';

/** The host to connect to for an advertised one. With TLS the name stays, since certificates carry it. */
export function dialledHost(host: string, secure: boolean): string {
  return !secure && host.toLowerCase() === 'localhost' ? loopback : host;
}

/** Pages of a browser may connect to a cluster without a secret only if they were served by this machine. */
export function isLoopbackOrigin(origin: string): boolean {
  try {
    return isLoopbackHost(new URL(origin).hostname.replace(/^\[|\]$/g, ''));
  } catch {
    return false;
  }
}

function checkPort(field: string, value: unknown): void {
  const valid = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535;
  if (!valid) throw new TransportOptionsError(field, value, 'must be a whole number from 0 to 65535');
}

/** The value itself is never part of an error. */
function checkSecret(secret: Secret | undefined): void {
  if (secret === undefined) return;
  const all = typeof secret === 'string' ? [secret] : [secret?.current, ...(secret?.also ?? [])];
  const valid = all.every((each) => typeof each === 'string' && each.length > 0);
  if (!valid) {
    throw new TransportOptionsError('secret', '(hidden)', 'must be non-empty text, or { current, also: [text, …] }');
  }
}

function checkTls(tls: TlsOptions, runtime: Runtime): void {
  for (const field of ['cert', 'key'] as const) {
    if (typeof tls[field] === 'string' && tls[field].includes('-----BEGIN')) continue;
    throw new TransportOptionsError(`tls.${field}`, '(hidden)', 'certificate and key are both needed, as PEM text');
  }
  if (tls.ca !== undefined && !(typeof tls.ca === 'string' && tls.ca.includes('-----BEGIN'))) {
    throw new TransportOptionsError('tls.ca', '(hidden)', 'must be PEM text');
  }
  if (tls.clientCertificates !== true) return;
  if (tls.ca === undefined) {
    throw new TransportOptionsError(
      'tls.clientCertificates',
      true,
      'needs tls.ca, which the certificates are checked with',
    );
  }
  if (runtime.name === 'deno') {
    const rule = 'is not possible on Deno, whose listener cannot ask for certificates; run all nodes on Bun or Node';
    throw new TransportOptionsError('tls.clientCertificates', true, rule);
  }
}

/** What a node that dials shows and trusts. */
export function clientTls({ ca, cert, key, clientCertificates }: TlsOptions): ClientTls {
  return { ...(ca === undefined ? {} : { ca }), ...(clientCertificates === true ? { cert, key } : {}) };
}
