/** Dialling with the `WebSocket` of the Web platform, for the runtimes whose own one is used. */
import type { Cancel } from '../../src/actor/environment.ts';
import type { DialOptions, Runtime, Socket } from '../../src/transport/runtime.ts';
import { ManagedSocket, type RawSocket } from './managed_socket.ts';

export type DialOutcome = Parameters<Parameters<Runtime['dial']>[1]>[0];

/** The parts of a WebSocket used here; the DOM type and the runtimes' own ones all fit. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount?: number;
  readonly readyState: number;
  send(bytes: Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: string, listener: (event: any) => void): void;
}

const closing = 2;

export interface DialMeans {
  readonly open: () => WebSocketLike;
  /** Whether its `send` has its own copy when it returns. */
  readonly copies?: boolean;
  /** Drops a connection at once; undefined where the runtime cannot. */
  readonly terminate?: (socket: WebSocketLike) => void;
  /** Finds out why a dial failed, which the web API does not say; undefined where the runtime cannot. */
  readonly explain?: (options: DialOptions, detail: string, settle: (outcome: DialOutcome) => void) => Cancel;
}

/** Binds a web socket to the common behaviour. Must be called before its first event can fire. */
export function manageWebSocket(
  socket: WebSocketLike,
  maxFrameBytes: number,
  { terminate, copies = false }: Pick<DialMeans, 'terminate' | 'copies'> = {},
): ManagedSocket {
  socket.binaryType = 'arraybuffer';
  const raw: RawSocket = {
    copies,
    send(bytes) {
      if (socket.readyState < closing) socket.send(bytes as Uint8Array<ArrayBuffer>);
      return true;
    },
    bufferedBytes: () => socket.bufferedAmount ?? 0,
    close: (code, reason) => socket.close(code, reason),
    terminate: () => terminate === undefined ? socket.close() : terminate(socket),
  };
  const managed = new ManagedSocket(raw, maxFrameBytes);
  socket.addEventListener('message', (event: { data: unknown }) => {
    if (event.data instanceof ArrayBuffer) managed.received(new Uint8Array(event.data));
    else managed.receivedText();
  });
  socket.addEventListener(
    'close',
    (event: { code: number; reason: string }) => managed.ended(event.code, event.reason),
  );
  // An error is followed by a close everywhere but in a failed dial on Node 22, and that is settled by the dial.
  socket.addEventListener('error', () => managed.ended(1006, 'connection error'));
  return managed;
}

export function dialWebSocket(
  means: DialMeans,
  options: DialOptions,
  done: (outcome: DialOutcome) => void,
): Cancel {
  let settled = false;
  let socket: WebSocketLike | undefined;
  let stopProbe: Cancel | undefined;
  const timer = setTimeout(() => {
    giveUp();
    settle({ reason: 'timeout', detail: `no answer within ${options.timeoutMs} ms` });
  }, options.timeoutMs);

  function settle(outcome: DialOutcome | undefined): void {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    stopProbe?.();
    if (outcome !== undefined) done(outcome);
  }
  function giveUp(): void {
    try {
      socket?.close();
    } catch {
      // It never opened.
    }
  }
  let failed = false;
  function fail(detail: string): void {
    if (settled || failed) return;
    failed = true;
    const text = detail === '' ? 'connection failed' : detail;
    if (means.explain === undefined) settle({ reason: 'other', detail: text });
    else stopProbe = means.explain(options, text, settle);
  }

  try {
    socket = means.open();
  } catch (error) {
    queueMicrotask(() => settle({ reason: 'other', detail: errorText(error) }));
    return () => settle(undefined);
  }
  const opened = socket;
  const managed = manageWebSocket(opened, options.maxFrameBytes, means);
  opened.addEventListener('open', () => {
    if (settled) return giveUp();
    settle(managed satisfies Socket);
  });
  opened.addEventListener('error', (event: { message?: string }) => fail(event.message ?? ''));
  opened.addEventListener('close', (event: { code: number }) => fail(`closed with ${event.code} before it opened`));
  return () => {
    if (settled) return;
    settle(undefined);
    giveUp();
  };
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
