import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePorts } from './cluster_process.ts';

/** A way to a server on this machine that can be cut, made silent, and mended. */
export class Forwarder {
  readonly url: string;
  readonly port: number;
  readonly #target: number;
  #server: Server | undefined;
  #silent = false;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number, target: string) {
    this.port = port;
    this.#target = Number(new URL(target).port);
    this.url = `http://127.0.0.1:${port}`;
  }

  static async to(target: string, at?: number): Promise<Forwarder> {
    const [port] = at === undefined ? await freePorts(1) : [at];
    const forwarder = new Forwarder(port!, target);
    await forwarder.mend();
    return forwarder;
  }

  async mend(): Promise<void> {
    if (this.#silent) this.#drop();
    this.#silent = false;
    if (this.#server !== undefined) return;
    const server = createServer((socket) => this.#take(socket));
    this.#server = server;
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(this.port, '127.0.0.1', resolve));
  }

  /** Connections are accepted and stay, and nothing passes: as where the network drops every packet. */
  silence(): void {
    this.#silent = true;
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  /** Connections are reset, and refused from now on. */
  cut(): Promise<void> {
    this.#drop();
    const server = this.#server;
    this.#server = undefined;
    return new Promise((resolve) => server ? server.close(() => resolve()) : resolve());
  }

  #drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #take(socket: Socket): void {
    this.#keep(socket);
    if (this.#silent) return void socket.pause();
    const onward = connect(this.#target, '127.0.0.1');
    this.#keep(onward, socket);
    socket.on('close', () => onward.destroy());
    socket.pipe(onward).pipe(socket);
  }

  #keep(end: Socket, other?: Socket): void {
    this.#sockets.add(end);
    end.on('error', () => {});
    end.on('close', () => {
      this.#sockets.delete(end);
      other?.destroy();
    });
  }
}
