/** A local HTTP server as the jobs' target: it notes every call, in the order of arrival. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedCall {
  /** Monotonic milliseconds of this process at arrival. */
  readonly arrivedAt: number;
  readonly path: string;
  readonly id: string;
  readonly run: number;
  readonly epoch: number;
  readonly host: string;
  /** Wall-clock milliseconds. */
  readonly dueAt: number;
}

/**
 * Paths: `/status/503` answers with that status, `/slow/250` after that many milliseconds, `/hang` never, all others with
 * 204 at once.
 */
export class Receiver {
  readonly calls: ReceivedCall[] = [];
  readonly #server: Server;
  readonly #listeners = new Set<() => void>();

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => this.#receive(request, response));
  }

  static async start(): Promise<Receiver> {
    // Long keep-alive: a connection closed by the server in the moment it is used again would be a failed call.
    const server = createServer({ keepAliveTimeout: 60_000 });
    const receiver = new Receiver(server);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** Called after each arrival. */
  onCall(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const arrivedAt = performance.now();
    const path = request.url ?? '/';
    let text = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => text += chunk);
    request.on('error', () => {});
    request.on('end', () => {
      this.#note(arrivedAt, path, text);
      const [, kind, value] = path.split('/');
      if (kind === 'hang') return;
      const answer = () => void response.writeHead(kind === 'status' ? Number(value) : 204).end();
      if (kind === 'slow') setTimeout(answer, Number(value));
      else answer();
    });
  }

  #note(arrivedAt: number, path: string, text: string): void {
    const body = JSON.parse(text) as { id: string; run: number; epoch: number; host: string; dueAt: string };
    this.calls.push({ ...body, arrivedAt, path, dueAt: Date.parse(body.dueAt) });
    for (const listener of this.#listeners) listener();
  }
}
