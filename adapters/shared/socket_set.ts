/** The open sockets of one listener. */
import { closeAnswerMs, type ManagedSocket } from './managed_socket.ts';

/** Lets a promise settle in its own time, at most `ms`; a rejection counts as settled. The timer holds no process. */
export function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(done, done);
  });
}

export class SocketSet {
  readonly #open = new Set<ManagedSocket>();

  add(socket: ManagedSocket): void {
    this.#open.add(socket);
    socket.whenEnded(() => this.#open.delete(socket));
  }

  /** Says goodbye to every peer; those that do not answer in time are dropped. */
  async closeAll(reason: string): Promise<void> {
    const sockets = [...this.#open];
    const ended = sockets.map((socket) => new Promise<void>((resolve) => socket.whenEnded(resolve)));
    for (const socket of sockets) socket.close(1000, reason);
    await settledWithin(Promise.all(ended), closeAnswerMs * 1.5);
    for (const socket of this.#open) socket.terminate();
  }
}
