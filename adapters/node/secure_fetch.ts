/** The global `fetch` of Node takes no certificate authority; `node:https` does. Bodies are text. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Readable } from 'node:stream';
import type { ClientTls } from '../../src/transport/runtime.ts';

export function secureFetch(url: string, init: RequestInit, tls: ClientTls): Promise<Response> {
  return new Promise((resolve, reject) => {
    const headers = Object.fromEntries(new Headers(init.headers).entries());
    const signal = init.signal ?? undefined;
    const outgoing = request(
      url,
      { method: init.method ?? 'GET', headers, ...tls, agent: false, signal },
      (incoming) => {
        try {
          resolve(responseOf(incoming));
        } catch (error) {
          // A status or a header that no HTTP server sends.
          incoming.destroy();
          reject(error);
        }
      },
    );
    outgoing.on('error', reject);
    outgoing.end(typeof init.body === 'string' ? init.body : undefined);
  });
}

function responseOf(incoming: IncomingMessage): Response {
  const status = incoming.statusCode ?? 500;
  const bodyless = status === 204 || status === 304;
  const body = bodyless ? null : Readable.toWeb(incoming) as ReadableStream<Uint8Array<ArrayBuffer>>;
  if (bodyless) incoming.resume();
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  return new Response(body, { status, headers });
}
