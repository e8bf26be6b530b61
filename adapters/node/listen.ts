/** Node: `node:http(s)` with `ws` for the upgrade and `@hono/node-server` as bridge to `fetch` handlers. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { ListenError } from '../../src/transport/errors.ts';
import type { Listener, ListenOptions, TlsOptions } from '../../src/transport/runtime.ts';
import { listenFailure } from '../shared/listen_failure.ts';
import { settledWithin, SocketSet } from '../shared/socket_set.ts';
import {
  admittingWhile,
  endpointFor,
  guardedFetch,
  refusalHeaders,
  type UpgradeRefusal,
  upgradeRefusal,
} from '../shared/upgrade.ts';
import { errorText } from '../shared/web_socket_dial.ts';
import { manageWs } from './ws_socket.ts';
import { loadNodeServer, loadWs } from './packages.ts';

const stopMs = 500;
/** What answers in progress, such as that to `POST /cluster/leave`, and ending event streams get to be sent. */
const finishMs = 200;
const notFound: UpgradeRefusal = { status: 404, text: 'not found\n' };

export async function listen(options: ListenOptions): Promise<Listener> {
  const { ws, bridge } = await packages(options);
  const sockets = new SocketSet();
  let closing = false;
  const admitting = admittingWhile(() => !closing, options);
  // Requests for other upgrades (HTTP/2 over clear text) are answered as plain HTTP where Node offers the choice.
  const settings = {
    shouldUpgradeCallback: (request: IncomingMessage) => endpointFor(options, pathOf(request)) !== undefined,
  };
  const handler = bridge.getRequestListener((request) => answer(admitting, request), { overrideGlobalObjects: false });
  const server = options.tls === undefined
    ? createServer(settings, handler)
    : createSecureServer({ ...settings, ...serverTls(options.tls) }, handler) as Server;
  const upgrader = new ws.WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: options.maxFrameBytes,
    // Refused before this where it is not the one of the path.
    handleProtocols: (_offered, request) => endpointFor(options, pathOf(request))?.subprotocol ?? false,
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgrade(admitting, upgrader, sockets, request, socket, head);
  });
  await bound(server, options);
  server.on('error', (error) => closing ? undefined : options.onLost(errorText(error)));
  server.on('close', () => closing ? undefined : options.onLost('the HTTP server closed'));
  let closed: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      closing = true;
      closed ??= sockets.closeAll('listener closed').then(() => stop(server));
      return closed;
    },
  };
}

function serverTls({ cert, key, ca, clientCertificates }: TlsOptions) {
  if (clientCertificates !== true) return { cert, key };
  return { cert, key, requestCert: true, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
}

async function packages(options: ListenOptions) {
  try {
    return { ws: await loadWs(), bridge: await loadNodeServer() };
  } catch (error) {
    const detail = `on Node install the packages ws and @hono/node-server: ${errorText(error)}`;
    throw new ListenError(options.hostname, options.port, 'unsupported', detail);
  }
}

function bound(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => reject(listenFailure(options.hostname, options.port, error));
    server.once('error', failed);
    server.listen({ host: options.hostname, port: options.port, exclusive: true }, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

async function stop(server: Server): Promise<void> {
  const ended = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  await settledWithin(ended, finishMs);
  server.closeAllConnections();
  return settledWithin(ended, stopMs);
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/';
}

function answer(options: ListenOptions, request: Request): Response | Promise<Response> {
  const endpoint = endpointFor(options, new URL(request.url).pathname);
  if (endpoint === undefined) return guardedFetch(options.fetch, request);
  const refusal = upgradeRefusal(endpoint, (name) => name === 'upgrade' ? undefined : request.headers.get(name));
  return new Response(refusal?.text, { status: refusal?.status ?? 400, headers: { upgrade: 'websocket' } });
}

function upgrade(
  options: ListenOptions,
  upgrader: WebSocketServer,
  sockets: SocketSet,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  // Without a listener an error on a raw socket ends the process; `ws` adds its own only once it owns the socket.
  socket.on('error', () => socket.destroy());
  const endpoint = endpointFor(options, pathOf(request));
  const refusal = endpoint !== undefined ? upgradeRefusal(endpoint, (name) => headerOf(request, name)) : notFound;
  if (refusal !== undefined || endpoint === undefined) return refuse(socket, refusal ?? notFound);
  upgrader.handleUpgrade(request, socket, head, (webSocket: WebSocket) => {
    const managed = manageWs(webSocket, options.maxFrameBytes);
    sockets.add(managed);
    endpoint.onSocket(managed, request.socket.remoteAddress ?? '');
  });
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

function refuse(socket: Duplex, refusal: UpgradeRefusal): void {
  const headers = { ...refusalHeaders(refusal), 'content-length': String(refusal.text.length) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${refusal.status} Refused\r\n${lines}\r\n${refusal.text}`);
}
