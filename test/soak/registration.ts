/** An instance's side of the registry: begins, reports what it handles, and ends, each confirmed. */
import { connect, type Socket } from 'node:net';
import process from 'node:process';

export class Registration {
  readonly #socket: Socket;
  #count = 0;
  #booked = false;
  #answer: ((text: string) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8').setNoDelay(true);
    socket.on('data', (text: string) => this.#answer?.(text.trim()));
  }

  /** Resolves when the registry has noted it. Without a registry nothing may run: the process ends. */
  static async open(port: number, name: string, epoch: number): Promise<Registration> {
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve) => {
      socket.on('error', (error) => {
        console.error(`the registry is gone: ${error.message}`);
        process.exit(3);
      });
      socket.once('connect', () => resolve());
    });
    const registration = new Registration(socket);
    await registration.#ask(`register ${name} ${epoch}\n`);
    return registration;
  }

  /** One more message was handled; told at the end of this turn. */
  handled(): void {
    this.#count += 1;
    if (this.#booked) return;
    this.#booked = true;
    setImmediate(() => {
      this.#booked = false;
      if (this.#count > 0) this.#socket.write(this.#take());
    });
  }

  async close(): Promise<void> {
    await this.#ask(`${this.#count > 0 ? this.#take() : ''}unregister\n`);
    this.#socket.end();
  }

  #take(): string {
    const line = `handled ${this.#count}\n`;
    this.#count = 0;
    return line;
  }

  #ask(text: string): Promise<string> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#socket.write(text);
    });
  }
}
