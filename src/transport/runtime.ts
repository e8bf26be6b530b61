/**
 * What an adapter gives the WebSocket transport: listening, dialling and probing with the means of one runtime.
 * Adapters live in `adapters/`; nothing in `src` imports one except through `#runtime`.
 */
import type { Cancel } from '../actor/environment.ts';
import type { LinkClose, ProbeOutcome } from './contract.ts';

export interface TlsOptions {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  /**
   * Whoever connects, nodes, operators and probes alike, must show a certificate that `ca` has signed; nodes show their own.
   * Not on Deno, whose listener cannot ask for one. Default false.
   */
  readonly clientCertificates?: boolean;
}

/** What a client needs of it: whom to trust, and, where a listener asks, what to show. */
export type ClientTls = Partial<Pick<TlsOptions, 'ca' | 'cert' | 'key'>>;

/** A WebSocket after its upgrade, the same on every runtime and on both sides. Binary frames only. */
export interface Socket {
  /**
   * False when the runtime dropped the frame on an open connection: the caller must treat the connection as lost. Once a
   * side has closed it, frames go nowhere and the answer is true: `onClose` tells.
   */
  send(bytes: Uint8Array): boolean;
  /** True where `send` has its own copy when it returns. */
  readonly copies?: boolean;
  bufferedBytes(): number;
  close(code: number, reason: string): void;
  /** Assigned by the owner in the turn it gets the socket; no event is lost before that. */
  onMessage: (bytes: Uint8Array) => void;
  onClose: (close: LinkClose) => void;
  /** Some of what was buffered has left the process. Called where the runtime can tell, on others never. */
  onDrain: () => void;
}

/** A path on which WebSockets are taken. */
export interface UpgradeEndpoint {
  readonly socketPath: string;
  readonly subprotocol: string;
  /** False refuses the upgrade with 503 (too many connections). */
  readonly admit: () => boolean;
  /** Asked for upgrades that carry an `Origin` header (a page in a browser); false refuses with 403. Default: all pass. */
  readonly admitOrigin?: (origin: string) => boolean;
  readonly onSocket: (socket: Socket, remote: string) => void;
}

export interface ListenOptions extends UpgradeEndpoint {
  readonly hostname: string;
  readonly port: number;
  readonly tls?: TlsOptions;
  /** Of a frame from outside; a larger one ends its connection. */
  readonly maxFrameBytes: number;
  /** Further paths for upgrades on the same port; everything else goes to `fetch`. */
  readonly endpoints?: readonly UpgradeEndpoint[];
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly onLost: (why: string) => void;
}

export interface Listener {
  readonly port: number;
  /** Closes open sockets and the listener; resolves when nothing keeps the process alive any more. */
  close(): Promise<void>;
}

export interface DialOptions {
  readonly url: string;
  readonly subprotocol: string;
  readonly timeoutMs: number;
  readonly maxFrameBytes: number;
  readonly tls?: ClientTls;
}

export interface Runtime {
  readonly name: 'bun' | 'deno' | 'node' | 'edge';
  readonly version: string;
  /** Binds exclusively (a second listener on the port fails); rejects with `ListenError` naming host, port and cause. */
  listen(options: ListenOptions): Promise<Listener>;
  dial(
    options: DialOptions,
    done: (outcome: Socket | { reason: 'refused' | 'timeout' | 'reset' | 'other'; detail: string }) => void,
  ): Cancel;
  probe(host: string, port: number, timeoutMs: number, done: (outcome: ProbeOutcome) => void): Cancel;
  /** Web `fetch`, with a certificate authority of one's own where `tls.ca` is given. */
  fetch(url: string, init: RequestInit, tls?: ClientTls): Promise<Response>;
  /** From a cryptographically secure source. */
  randomBytes(length: number): Uint8Array<ArrayBuffer>;
  /** Calls back once per SIGTERM/SIGINT; a no-op where signals do not exist. */
  onSignal(run: (signal: 'SIGTERM' | 'SIGINT') => void): Cancel;
  exit(code: number): void;
  args(): readonly string[];
  readTextFile(path: string): Promise<string>;
  /** Undefined when unset or when the runtime does not allow reading it; never prompts. */
  environmentVariable(name: string): string | undefined;
}

/** What a caller from outside needs of it; by itself, so that a bundle for a page holds no more. */
export type Dialler = Pick<Runtime, 'dial' | 'randomBytes'>;
