/** The opening handshake of a WebSocket client (RFC 6455, section 4.1): the request, and a strict look at the answer. */

/** The head of an answer is at most this long. */
export const answerBytes = 8 * 1024;

const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export interface Expected {
  /** `acceptFor` of the key that was sent. */
  readonly accept: string;
  readonly subprotocol: string;
}

export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** `Sec-WebSocket-Accept` that belongs to a `Sec-WebSocket-Key`. */
export async function acceptFor(key: string): Promise<string> {
  return base64(new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(key + magic))));
}

export function upgradeRequest(url: URL, key: string, subprotocol: string): Uint8Array<ArrayBuffer> {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${key}`,
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Protocol: ${subprotocol}`,
  ];
  return new TextEncoder().encode(`${lines.join('\r\n')}\r\n\r\n`);
}

/** Where the head in `bytes` ends (behind its empty line); -1 while it does not. The first `known` bytes were seen before. */
export function headEnd(bytes: Uint8Array, known = 0): number {
  for (let at = bytes.indexOf(10, Math.max(0, known - 3)); at !== -1; at = bytes.indexOf(10, at + 1)) {
    if (at >= 3 && bytes[at - 1] === 13 && bytes[at - 2] === 10 && bytes[at - 3] === 13) return at + 1;
  }
  return -1;
}

/** Says what is wrong with an answer; undefined when the connection is open. `head` ends with its empty line. */
export function wrongAnswer(head: Uint8Array, expected: Expected): string | undefined {
  const text = String.fromCharCode(...head.subarray(0, -4));
  const [statusLine = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.1 ([1-5]\d\d)(?: |$)/.exec(statusLine)?.[1];
  if (status === undefined) return 'the answer is not HTTP/1.1';
  if (status !== '101') return `HTTP status ${status}`;
  const headers = readHeaders(lines);
  if (headers === undefined) return 'the answer has a malformed header';
  if (headers.get('upgrade')?.toLowerCase() !== 'websocket') return 'the answer does not upgrade to websocket';
  const connection = (headers.get('connection') ?? '').toLowerCase().split(',').map((option) => option.trim());
  if (!connection.includes('upgrade')) return 'the answer does not upgrade the connection';
  if (headers.get('sec-websocket-accept') !== expected.accept) return 'Sec-WebSocket-Accept does not match the key';
  if (headers.get('sec-websocket-protocol') !== expected.subprotocol) {
    return `the answer does not choose the subprotocol ${expected.subprotocol}`;
  }
  if (headers.has('sec-websocket-extensions')) return 'the answer chooses an extension that was not offered';
  return undefined;
}

/** Names in lower case; values of a repeated header are joined. Undefined when a line breaks the grammar. */
function readHeaders(lines: readonly string[]): ReadonlyMap<string, string> | undefined {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    const value = line.slice(colon + 1).replaceAll('\t', ' ').trim();
    // deno-lint-ignore no-control-regex
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || /[\0-\x1f\x7f]/.test(value)) return undefined;
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}
