/** Bun: `Bun.serve` with its own WebSockets, the global `WebSocket` as client. */
/// <reference types="bun-types" />
import type { ServerWebSocket } from 'bun';
import type {
  Dialler,
  DialOptions,
  Listener,
  ListenOptions,
  Runtime,
  TlsOptions,
  UpgradeEndpoint,
} from '../../src/transport/runtime.ts';
import { listenFailure } from '../shared/listen_failure.ts';
import { ManagedSocket } from '../shared/managed_socket.ts';
import { processMeans } from '../shared/process_means.ts';
import { settledWithin, SocketSet } from '../shared/socket_set.ts';
import { probeTcp } from '../shared/tcp_probe.ts';
import {
  admittingWhile,
  badRequest,
  endpointFor,
  guardedFetch,
  pathOf,
  refusalResponse,
  upgradeRefusal,
} from '../shared/upgrade.ts';
import { explainFailure } from '../shared/dial_failure.ts';
import { dialWebSocket, type WebSocketLike } from '../shared/web_socket_dial.ts';

/**
 * Bun drops frames without an error once this much waits for a slow peer. The layers above stop far below it; a frame
 * that is dropped all the same makes `send` return false and costs the connection.
 */
const backpressureBytes = 256 * 1024 * 1024;
/** Seconds an idle HTTP connection is kept; event streams send something more often than that. */
const httpIdleSeconds = 120;
const httpBodyBytes = 16 * 1024 * 1024;
/** A forced stop ends within a turn or two; its promise is known not to resolve at times. */
const stopMs = 500;
const openState = 1;

interface SocketData {
  readonly remote: string;
  readonly endpoint: UpgradeEndpoint;
  managed: ManagedSocket | undefined;
}

async function listen(options: ListenOptions): Promise<Listener> {
  const sockets = new SocketSet();
  let accepting = true;
  const admitting = admittingWhile(() => accepting, options);
  let server: ReturnType<typeof serve>;
  try {
    server = serve(options, admitting, sockets);
  } catch (error) {
    throw listenFailure(options.hostname, options.port, error);
  }
  let closed: Promise<void> | undefined;
  return {
    port: server.port ?? options.port,
    close() {
      accepting = false;
      closed ??= sockets.closeAll('listener closed').then(() => settledWithin(server.stop(true), stopMs));
      return closed;
    },
  };
}

function serverTls({ cert, key, ca, clientCertificates }: TlsOptions) {
  if (clientCertificates !== true) return { cert, key };
  return { cert, key, requestCert: true, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
}

function serve(options: ListenOptions, admitting: ListenOptions, sockets: SocketSet) {
  return Bun.serve<SocketData>({
    hostname: options.hostname,
    port: options.port,
    reusePort: false,
    // Never the error page for developers: it shows paths and source to whoever asks.
    development: false,
    error: () => badRequest(),
    idleTimeout: httpIdleSeconds,
    maxRequestBodySize: httpBodyBytes,
    ...(options.tls === undefined ? {} : { tls: serverTls(options.tls) }),
    fetch(request, server) {
      const path = pathOf(request.url);
      if (path === undefined) return badRequest();
      const endpoint = endpointFor(admitting, path);
      if (endpoint === undefined) return guardedFetch(options.fetch, absolute(request, path));
      const refusal = upgradeRefusal(endpoint, (name) => request.headers.get(name));
      if (refusal !== undefined) return refusalResponse(refusal);
      const remote = server.requestIP(request)?.address ?? '';
      const data: SocketData = { remote, endpoint, managed: undefined };
      const headers = { 'sec-websocket-protocol': endpoint.subprotocol };
      return server.upgrade(request, { data, headers }) ? undefined : new Response('bad upgrade\n', { status: 400 });
    },
    websocket: {
      data: {} as SocketData,
      backpressureLimit: backpressureBytes,
      closeOnBackpressureLimit: false,
      maxPayloadLength: options.maxFrameBytes,
      idleTimeout: 0,
      sendPings: false,
      perMessageDeflate: false,
      open(socket) {
        socket.binaryType = 'uint8array';
        const managed = manage(socket, options.maxFrameBytes);
        socket.data.managed = managed;
        sockets.add(managed);
        socket.data.endpoint.onSocket(managed, socket.data.remote);
      },
      message(socket, message) {
        if (typeof message === 'string') socket.data.managed?.receivedText();
        else socket.data.managed?.received(message);
      },
      drain: (socket) => socket.data.managed?.drained(),
      close: (socket, code, reason) => socket.data.managed?.ended(code, reason),
    },
  });
}

/** Without a Host header Bun gives the bare path. */
function absolute(request: Request, path: string): Request {
  return URL.canParse(request.url) ? request : new Request(new URL(path, 'http://localhost'), request);
}

function manage(socket: ServerWebSocket<SocketData>, maxFrameBytes: number): ManagedSocket {
  return new ManagedSocket({
    copies: true,
    // More than 0: written; -1: queued by the runtime; 0: dropped, or the connection is closing.
    send: (bytes) => socket.readyState !== openState || socket.sendBinary(bytes as Uint8Array<ArrayBuffer>) !== 0,
    bufferedBytes: () => socket.getBufferedAmount(),
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
  }, maxFrameBytes);
}

function dial(options: DialOptions, done: Parameters<Runtime['dial']>[1]) {
  const init = {
    protocols: [options.subprotocol],
    perMessageDeflate: false,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  };
  const open = () => new (WebSocket as unknown as new (url: string, init: object) => WebSocketLike)(options.url, init);
  const terminate = (socket: WebSocketLike) => (socket as WebSocketLike & { terminate(): void }).terminate();
  return dialWebSocket({ open, terminate, explain: explainFailure, copies: true }, options, done);
}

/** Everything a node needs of this runtime; what `ClusterOptions.runtime` is by default here. */
export const runtime: Runtime = {
  name: 'bun',
  version: Bun.version,
  listen,
  dial,
  probe: probeTcp,
  fetch: (url, init, tls) => fetch(url, { ...init, ...(tls === undefined ? {} : { tls }) }),
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  ...processMeans,
};

/** What a caller from outside needs of it. */
export const dialler: Dialler = runtime;
