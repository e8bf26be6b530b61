/** `Cluster.connect`, by itself, so that a bundle for a browser holds callers and no cluster node. */
import type { Environment } from '../actor/environment.ts';
import { safeLogger } from '../actor/logger.ts';
import { realEnvironment } from '../actor/real_environment.ts';
import { isLoopbackHost } from '../transport/address.ts';
import type { DialFailure } from '../transport/contract.ts';
import { importKey } from '../transport/secret_keys.ts';
import { Caller } from './caller.ts';
import { checkConnect, type ConnectOptions } from './caller_options.ts';
import { type CallerDial, webSocketDial } from './dial.ts';

/** No node let this caller in; `failures` says why, by address. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError';
  /** Of the latest failure: `token`, `cluster-name`, `protocol`, `not-ready`, `too-many-connections`, `refused`, `timeout`, … */
  readonly code: string;
  readonly failures: ReadonlyMap<string, DialFailure>;

  constructor(message: string, code: string, failures: ReadonlyMap<string, DialFailure>) {
    super(message);
    this.code = code;
    this.failures = failures;
  }
}

/** Refusals that another try will not change. */
const lasting: ReadonlySet<string> = new Set(['token', 'cluster-name', 'protocol', 'malformed']);

/**
 * Connects to a cluster from outside, by one outbound WebSocket to one of the nodes at `urls` (`host:port` or `ws(s)://…`),
 * each of which must list the token in `ClusterOptions.callers`. When that connection ends, the caller connects to another
 * address by itself, and what it has told is settled there. Resolves once it is connected.
 * @throws OptionsError for a bad option; ConnectError when every address refuses for good, or when the time is up
 */
export async function connect(urls: string | readonly string[], options: ConnectOptions): Promise<Caller> {
  const checked = checkConnect(urls, options);
  const environment = options.environment ?? realEnvironment(options.logger && safeLogger(options.logger));
  const order = shuffled(checked.urls, environment);
  if (options.frameIntegrity !== true) warnOfPlainText(order, environment);
  const dial = options.dial ?? await socketDial(options, environment);
  const caller = new Caller({ environment, urls: order, dial, options: checked.options });
  await connected(caller, order, options, environment);
  return caller;
}

async function socketDial(options: ConnectOptions, environment: Environment): Promise<CallerDial> {
  const runtime = options.runtime ?? (await import('./own_dialler.ts')).dialler;
  const token = await importKey(options.token);
  const { clusterName, ca, frameIntegrity = false } = options;
  return webSocketDial({ runtime, environment, token, clusterName, ca, frameIntegrity });
}

function connected(
  caller: Caller,
  urls: readonly string[],
  { connectTimeoutMs = 10_000, signal }: ConnectOptions,
  environment: Environment,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failures = new Map<string, DialFailure>();
    const settle = (run: () => void): void => {
      cancelTimer();
      cancelEvents();
      signal?.removeEventListener('abort', aborted);
      run();
    };
    const fail = (what: string): void =>
      settle(() => {
        void caller.close();
        const [, last] = [...failures].at(-1) ?? [];
        reject(new ConnectError(`${what}${describe(failures)}`, last?.code ?? 'timeout', failures));
      });
    const aborted = (): void =>
      settle(() => {
        void caller.close();
        reject(signal?.reason ?? new Error('aborted'));
      });
    const cancelTimer = environment.timers.set(connectTimeoutMs, () => fail(`not connected in ${connectTimeoutMs} ms`));
    const cancelEvents = caller.subscribe((event) => {
      if (event.kind === 'connected') return settle(resolve);
      if (event.kind !== 'refused') return;
      failures.delete(event.url);
      failures.set(event.url, { reason: 'other', code: event.code, detail: event.detail });
      const lost = urls.every((url) => lasting.has(failures.get(url)?.code ?? ''));
      if (lost) fail('every address refused');
    });
    if (signal?.aborted) return aborted();
    signal?.addEventListener('abort', aborted);
    caller.start();
  });
}

function describe(failures: ReadonlyMap<string, DialFailure>): string {
  if (failures.size === 0) return '';
  return ': ' + [...failures].map(([url, { code, detail }]) => `${url}: ${code}: ${detail}`).join('; ');
}

/** So that callers spread over the nodes they all list alike. */
function shuffled(urls: readonly string[], { random }: Environment): readonly string[] {
  const list = [...urls];
  for (let at = list.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random.next() * (at + 1));
    [list[at], list[other]] = [list[other]!, list[at]!];
  }
  return list;
}

/** The token does not travel, but what is said does, and who can change it can go on in this caller's place. */
function warnOfPlainText(urls: readonly string[], { log }: Environment): void {
  const open = urls.filter((url) => {
    const { protocol, hostname } = new URL(url);
    return protocol === 'ws:' && !isLoopbackHost(hostname.replace(/^\[|\]$/g, ''));
  });
  if (open.length > 0) {
    log.warn('callers without TLS: others on the way can read and change what is sent', { urls: open });
  }
}
