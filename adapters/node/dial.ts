/**
 * Node dials with `ws`: it says why a dial failed, can drop a connection, limits frames and takes a certificate authority,
 * none of which the global `WebSocket` can. Without the package the global one serves (Node 22 and later).
 */
import { explainFailure } from '../shared/dial_failure.ts';
import type { WebSocket as Ws } from 'ws';
import type { Cancel } from '../../src/actor/environment.ts';
import type { DialOptions } from '../../src/transport/runtime.ts';
import { type DialOutcome, dialWebSocket, errorText, type WebSocketLike } from '../shared/web_socket_dial.ts';
import { loadWs, type WsModule } from './packages.ts';
import { manageWs } from './ws_socket.ts';

export function dial(options: DialOptions, done: (outcome: DialOutcome) => void): Cancel {
  let cancelled = false;
  let cancel: Cancel = () => {};
  loadWs().then(
    (ws) => cancelled ? () => {} : dialWs(ws, options, done),
    () => cancelled ? () => {} : dialGlobal(options, done),
  ).then((started) => {
    cancel = started;
    if (cancelled) started();
  });
  return () => {
    cancelled = true;
    cancel();
  };
}

function dialGlobal(options: DialOptions, done: (outcome: DialOutcome) => void): Cancel {
  const open = () => {
    if (typeof WebSocket === 'undefined') throw new Error('below Node 22, dialling needs the package ws');
    return new WebSocket(options.url, [options.subprotocol]) as WebSocketLike;
  };
  return dialWebSocket({ open, explain: explainFailure }, options, done);
}

function dialWs(ws: WsModule, options: DialOptions, done: (outcome: DialOutcome) => void): Cancel {
  let socket: Ws;
  let settled = false;
  const settle = (outcome: DialOutcome | undefined) => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    if (outcome !== undefined) done(outcome);
  };
  const timer = setTimeout(() => {
    settle({ reason: 'timeout', detail: `no answer within ${options.timeoutMs} ms` });
    socket?.terminate();
  }, options.timeoutMs);
  try {
    socket = new ws.WebSocket(options.url, [options.subprotocol], {
      perMessageDeflate: false,
      maxPayload: options.maxFrameBytes,
      ...options.tls,
    });
  } catch (error) {
    queueMicrotask(() => settle({ reason: 'other', detail: errorText(error) }));
    return () => settle(undefined);
  }
  const managed = manageWs(socket, options.maxFrameBytes);
  socket.on('open', () => settle(managed));
  socket.on('error', (error: Error & { code?: string }) => settle(failureOf(error)));
  socket.on('close', () => settle({ reason: 'reset', detail: 'closed before it opened' }));
  return () => {
    if (settled) return;
    settle(undefined);
    socket.terminate();
  };
}

function failureOf(error: Error & { code?: string }): DialOutcome {
  const inner = error instanceof AggregateError ? error.errors as { code?: string }[] : [];
  const codes = [error.code, ...inner.map((each) => each.code)];
  const detail = error.message === '' ? codes.join(' ') : error.message;
  if (codes.includes('ECONNREFUSED')) return { reason: 'refused', detail };
  if (codes.includes('ETIMEDOUT')) return { reason: 'timeout', detail };
  if (codes.includes('ECONNRESET') || codes.includes('EPIPE')) return { reason: 'reset', detail };
  return { reason: 'other', detail };
}
