/**
 * Deno dials with a WebSocket client of this library over `Deno.connect`. The global `WebSocket` of Deno leaves Nagle's
 * algorithm on and writes header and payload of a frame apart, so that on a quiet connection a frame waits for the peer's
 * delayed acknowledgement (some 40 ms); it neither says why a dial failed nor lets a connection be dropped.
 */
import type { Cancel } from '../../src/actor/environment.ts';
import type { DialOptions } from '../../src/transport/runtime.ts';
import { ClientConnection } from '../shared/ws_client_connection.ts';
import {
  acceptFor,
  answerBytes,
  base64,
  type Expected,
  headEnd,
  upgradeRequest,
  wrongAnswer,
} from '../shared/ws_client_handshake.ts';
import { MaskKeys } from '../shared/ws_client_output.ts';
import { type DialOutcome, errorText } from '../shared/web_socket_dial.ts';

const keys = new MaskKeys((bytes) => crypto.getRandomValues(bytes));

/** A stream whose upgrade was accepted, and what came in behind the answer. */
interface Upgraded {
  readonly stream: Deno.Conn;
  readonly received: Uint8Array<ArrayBuffer>;
}

class DialError extends Error {
  readonly reason: 'refused' | 'reset' | 'other';

  constructor(reason: DialError['reason'], detail: string) {
    super(detail);
    this.reason = reason;
  }
}

export function dial(options: DialOptions, done: (outcome: DialOutcome) => void): Cancel {
  const stop = new AbortController();
  let settled = false;
  const settle = (): boolean => {
    if (settled) return false;
    settled = true;
    clearTimeout(timer);
    return true;
  };
  const timer = setTimeout(() => {
    if (!settle()) return;
    stop.abort();
    done({ reason: 'timeout', detail: `no answer within ${options.timeoutMs} ms` });
  }, options.timeoutMs);
  open(options, stop.signal).then(({ stream, received }) => {
    if (!settle()) return stream.close();
    const connection = new ClientConnection(stream, options.maxFrameBytes, keys);
    done(connection.socket);
    connection.start(received);
  }, (error) => {
    if (settle()) done(failureOf(error));
  });
  return () => {
    if (settle()) stop.abort();
  };
}

async function open(options: DialOptions, signal: AbortSignal): Promise<Upgraded> {
  const url = new URL(options.url);
  const stream = await connect(url, options, signal);
  const drop = () => closeQuietly(stream);
  signal.addEventListener('abort', drop);
  try {
    signal.throwIfAborted();
    const key = base64(crypto.getRandomValues(new Uint8Array(16)));
    await writeAll(stream, upgradeRequest(url, key, options.subprotocol));
    const received = await readAnswer(stream, { accept: await acceptFor(key), subprotocol: options.subprotocol });
    signal.throwIfAborted();
    return { stream, received };
  } catch (error) {
    drop();
    throw error;
  } finally {
    signal.removeEventListener('abort', drop);
  }
}

async function connect(url: URL, { tls }: DialOptions, signal: AbortSignal): Promise<Deno.Conn> {
  const secure = url.protocol === 'wss:';
  if (!secure && url.protocol !== 'ws:') throw new DialError('other', `cannot dial ${url.protocol}`);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const plain = await Deno.connect({ hostname, port, signal });
  try {
    // A connect to a free port of the ephemeral range can meet itself (TCP simultaneous open): nobody listens there.
    const { localAddr, remoteAddr } = plain;
    if (localAddr.port === remoteAddr.port && localAddr.hostname === remoteAddr.hostname) {
      throw new DialError('refused', 'connection refused');
    }
    plain.setNoDelay(true);
    // Not `connectTls`: its connections cannot turn Nagle's algorithm off.
    if (secure) {
      return await Deno.startTls(plain, { hostname, ...(tls?.ca === undefined ? {} : { caCerts: [tls.ca] }) });
    }
  } catch (error) {
    closeQuietly(plain);
    throw error;
  }
  return plain;
}

async function writeAll(stream: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length;) from += await stream.write(bytes.subarray(from));
}

/** Resolves with what came in behind the head of an answer that opens the connection. */
async function readAnswer(stream: Deno.Conn, expected: Expected): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(answerBytes);
  for (let filled = 0; filled < buffer.length;) {
    const size = await stream.read(buffer.subarray(filled));
    if (size === null) throw new DialError('reset', 'closed before it answered the upgrade');
    const end = headEnd(buffer.subarray(0, filled + size), filled);
    filled += size;
    if (end === -1) continue;
    const wrong = wrongAnswer(buffer.subarray(0, end), expected);
    if (wrong !== undefined) throw notOurs(wrong);
    return buffer.subarray(end, filled);
  }
  throw notOurs(`the head of the answer is longer than ${answerBytes} bytes`);
}

function notOurs(why: string): DialError {
  return new DialError('other', `something listens there but did not accept the WebSocket: ${why}`);
}

function failureOf(error: unknown): DialOutcome {
  const detail = errorText(error);
  if (error instanceof DialError) return { reason: error.reason, detail };
  const { ConnectionRefused, ConnectionReset, ConnectionAborted, BrokenPipe, TimedOut, UnexpectedEof } = Deno.errors;
  if (error instanceof ConnectionRefused) return { reason: 'refused', detail };
  if (error instanceof TimedOut) return { reason: 'timeout', detail };
  const broken = [ConnectionReset, ConnectionAborted, BrokenPipe, UnexpectedEof].some((type) => error instanceof type);
  return { reason: broken ? 'reset' : 'other', detail };
}

function closeQuietly(stream: Deno.Conn): void {
  try {
    stream.close();
  } catch {
    // Already closed.
  }
}
