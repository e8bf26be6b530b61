/** A store that refuses writers of before, and holds up a handler where a test wants it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Write {
  readonly token: number;
  readonly accepted: boolean;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

/**
 * Takes a write only with a token that is not below one it has seen. `/gate` is answered when somebody opens it, which
 * holds up the handler that asked.
 */
export class FencedStore {
  readonly writes: Write[] = [];
  #highest = 0;
  readonly #waiting: ServerResponse[] = [];
  readonly #server: Server = createServer({ keepAliveTimeout: 60_000 });

  static async start(): Promise<FencedStore> {
    const store = new FencedStore();
    store.#server.on('request', (request, response) => store.#receive(request, response));
    await new Promise<void>((resolve) => store.#server.listen(0, '127.0.0.1', resolve));
    return store;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Handlers that wait at the gate. */
  get waiting(): number {
    return this.#waiting.length;
  }

  openGate(): void {
    for (const response of this.#waiting.splice(0)) response.writeHead(204).end();
  }

  /** The first token above `token` that was written. */
  successorOf(token: number): number | undefined {
    return this.writes.find((write) => write.accepted && write.token > token)?.token;
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === '/gate') return void this.#waiting.push(response);
    let text = '';
    request.setEncoding('utf8');
    request.on('error', () => {});
    request.on('data', (chunk: string) => text += chunk);
    request.on('end', () => {
      const { token } = JSON.parse(text) as { token: number };
      const accepted = token >= this.#highest;
      this.#highest = Math.max(this.#highest, token);
      this.writes.push({ token, accepted, at: Date.now() });
      response.writeHead(accepted ? 200 : 409).end();
    });
  }
}
