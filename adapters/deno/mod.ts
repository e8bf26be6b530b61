/** Deno: `Deno.serve` with upgraded sockets, a client of our own. Needs `--allow-net` and nothing else. */
import type { ClientTls, Dialler, Listener, ListenOptions, Runtime } from '../../src/transport/runtime.ts';
import { listenFailure } from '../shared/listen_failure.ts';
import { settledWithin, SocketSet } from '../shared/socket_set.ts';
import { probeTcp } from '../shared/tcp_probe.ts';
import { textFile } from '../shared/text_file.ts';
import {
  admittingWhile,
  badRequest,
  endpointFor,
  guardedFetch,
  pathOf,
  refusalResponse,
  upgradeRefusal,
} from '../shared/upgrade.ts';
import { manageWebSocket, type WebSocketLike } from '../shared/web_socket_dial.ts';
import { dial } from './dial.ts';

const stopMs = 500;
/** What answers in progress, such as that to `POST /cluster/leave`, and ending event streams get to be sent. */
const finishMs = 200;
const signals = ['SIGTERM', 'SIGINT'] as const;

async function listen(options: ListenOptions): Promise<Listener> {
  const sockets = new SocketSet();
  const stop = new AbortController();
  const answering = new Set<Promise<void>>();
  let closing = false;
  const admitting = admittingWhile(() => !closing, options);
  const tls = options.tls === undefined ? {} : { cert: options.tls.cert, key: options.tls.key };
  let server: Deno.HttpServer<Deno.NetAddr>;
  try {
    const settings = {
      hostname: options.hostname,
      port: options.port,
      signal: stop.signal,
      onListen: () => {},
      ...tls,
    };
    server = Deno.serve(settings, (request, info) => {
      // An upgraded request is never complete.
      if (!request.headers.has('upgrade')) {
        const sent = info.completed.then(() => {}, () => {}).then(() => void answering.delete(sent));
        answering.add(sent);
        replaceSignal(request, info.completed);
      }
      return answer(admitting, sockets, request, info.remoteAddr.hostname);
    });
  } catch (error) {
    throw listenFailure(options.hostname, options.port, error);
  }
  const lost = (why: string) => closing ? undefined : options.onLost(why);
  server.finished.then(() => lost('the HTTP server finished'), (error) => lost(String(error)));
  let closed: Promise<void> | undefined;
  return {
    port: server.addr.port,
    close() {
      closing = true;
      closed ??= sockets.closeAll('listener closed').then(async () => {
        // Not `server.shutdown()`: once that waits for a peer that reads nothing, nothing stops it any more.
        await settledWithin(Promise.all(answering), finishMs);
        stop.abort();
        return settledWithin(server.finished, stopMs);
      });
      return closed;
    },
  };
}

/**
 * A signal that aborts once the request is over, as Deno's own does today. Deno warns everybody who reads its own that this
 * will change, and handlers read the signal on every runtime. Made when it is read.
 */
function replaceSignal(request: Request, completed: Promise<void>): void {
  let signal: AbortSignal | undefined;
  Object.defineProperty(request, 'signal', {
    configurable: true,
    get: () => {
      if (signal !== undefined) return signal;
      const over = new AbortController();
      const abort = () => over.abort();
      completed.then(abort, abort);
      return signal = over.signal;
    },
  });
}

/** Deno throws on reading the URL of a request with a malformed Host. */
function requestPath(request: Request): string | undefined {
  try {
    return pathOf(request.url);
  } catch {
    return undefined;
  }
}

function answer(
  options: ListenOptions,
  sockets: SocketSet,
  request: Request,
  remote: string,
): Response | Promise<Response> {
  const path = requestPath(request);
  if (path === undefined) return badRequest();
  const endpoint = endpointFor(options, path);
  if (endpoint === undefined) return guardedFetch(options.fetch, request);
  const refusal = upgradeRefusal(endpoint, (name) => request.headers.get(name));
  if (refusal !== undefined) return refusalResponse(refusal);
  try {
    const { socket, response } = Deno.upgradeWebSocket(request, { protocol: endpoint.subprotocol, idleTimeout: 0 });
    const managed = manageWebSocket(socket as WebSocketLike, options.maxFrameBytes, { terminate, copies: true });
    socket.addEventListener('open', () => {
      sockets.add(managed);
      endpoint.onSocket(managed, remote);
    });
    return response;
  } catch {
    return new Response('bad upgrade\n', { status: 400 });
  }
}

/**
 * A `WebSocket` cannot be dropped without the peer's consent through Deno's public API: a peer that never answers a close
 * would keep this process alive. Closing the resource below it does; where that door is missing, the connection stays
 * until the peer or the listener ends, and the owner has long been told of the close.
 */
function terminate(socket: WebSocketLike): void {
  const rid = Object.getOwnPropertySymbols(socket).find((symbol) => symbol.description === '[[rid]]');
  const id = rid === undefined ? undefined : (socket as unknown as Record<symbol, unknown>)[rid];
  const deno = Deno as unknown as { internal?: symbol } & Record<symbol, { core?: { tryClose?(id: number): void } }>;
  const core = deno.internal === undefined ? undefined : deno[deno.internal]?.core;
  if (typeof id === 'number' && typeof core?.tryClose === 'function') core.tryClose(id);
  else socket.close();
}

/** An HTTP client that trusts `ca`, shared by every use of the same certificate. */
let trusting: { readonly ca: string; readonly client: Deno.HttpClient } | undefined;
function clientFor(tls: ClientTls | undefined): { client?: Deno.HttpClient } {
  if (tls?.ca === undefined) return {};
  if (trusting?.ca !== tls.ca) trusting = { ca: tls.ca, client: Deno.createHttpClient({ caCerts: [tls.ca] }) };
  return { client: trusting.client };
}

function granted(permission: Deno.PermissionDescriptor): boolean {
  return Deno.permissions.querySync(permission).state === 'granted';
}

/** Everything a node needs of this runtime; what `ClusterOptions.runtime` is by default here. */
export const runtime: Runtime = {
  name: 'deno',
  version: Deno.version.deno,
  listen,
  dial,
  probe: probeTcp,
  fetch: (url, init, tls) => fetch(url, { ...init, ...clientFor(tls) } as RequestInit),
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  onSignal(run) {
    const listeners = signals.map((signal) => {
      const listener = () => run(signal);
      Deno.addSignalListener(signal, listener);
      return () => Deno.removeSignalListener(signal, listener);
    });
    return () => listeners.splice(0).forEach((off) => off());
  },
  exit: (code) => Deno.exit(code),
  args: () => Deno.args,
  async readTextFile(path) {
    if (!granted({ name: 'read', path })) throw new Error(`cannot read ${path}: run with --allow-read=${path}`);
    return await textFile(path, (await Deno.open(path)).readable);
  },
  environmentVariable: (name) => granted({ name: 'env', variable: name }) ? Deno.env.get(name) : undefined,
};

/** What a caller from outside needs of it. */
export const dialler: Dialler = runtime;
