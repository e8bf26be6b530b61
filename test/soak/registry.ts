/**
 * The outside observer: a process of its own, with one clock, that every instance tells when it begins and ends. It ends
 * itself with exit code 1 as soon as a second instance registers while one is live, or one that is not live handles
 * something. A killed process' registration ends when the kernel closes its connection.
 *
 * An instance writes lines: `register NAME EPOCH` (answer `ok`), `handled COUNT` after each turn that handled something,
 * `unregister` (answer `bye`). The registry prints one `Notice` a line, as JSON.
 */
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { createInterface } from 'node:readline';

export type Notice =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'registered' | 'unregistered' | 'lost'; readonly name: string; readonly epoch: number }
  | {
    /** The first messages of this instance; `gapMs` since the last ones of the instance before. */
    readonly kind: 'handling';
    readonly name: string;
    readonly epoch: number;
    readonly gapMs: number | null;
    /** How the instance before ended. */
    readonly after: 'unregistered' | 'lost' | null;
  }
  | { readonly kind: 'overlap'; readonly why: string };

interface Registration {
  readonly name: string;
  readonly epoch: number;
  handled: number;
}

let live: Registration | undefined;
let lastHandledAt: number | null = null;
let lastEnd: 'unregistered' | 'lost' | null = null;

function say(notice: Notice): void {
  process.stdout.write(JSON.stringify(notice) + '\n');
}

function die(why: string): never {
  say({ kind: 'overlap', why });
  process.exit(1);
}

function nameOf({ name, epoch }: Registration): string {
  return `${name} (epoch ${epoch})`;
}

function serve(socket: Socket): void {
  let own: Registration | undefined;
  const end = (kind: 'unregistered' | 'lost'): void => {
    if (own === undefined || own !== live) return;
    live = undefined;
    lastEnd = kind;
    say({ kind, name: own.name, epoch: own.epoch });
  };
  const take = (line: string, at: number): void => {
    const [verb, ...rest] = line.split(' ');
    switch (verb) {
      case 'register':
        own = { name: rest[0]!, epoch: Number(rest[1]), handled: 0 };
        if (live !== undefined) die(`${nameOf(own)} registers while ${nameOf(live)} is live`);
        live = own;
        say({ kind: 'registered', name: own.name, epoch: own.epoch });
        return void socket.write('ok\n');
      case 'handled': {
        if (own === undefined || own !== live) die(`${own ? nameOf(own) : 'a stranger'} handles and is not registered`);
        const { name, epoch } = own;
        const gapMs = lastHandledAt === null ? null : at - lastHandledAt;
        if (own.handled === 0) say({ kind: 'handling', name, epoch, gapMs, after: lastEnd });
        own.handled += Number(rest[0]);
        lastHandledAt = at;
        return;
      }
      case 'unregister':
        end('unregistered');
        return void socket.write('bye\n');
      default:
        die(`a line that is none: ${line}`);
    }
  };
  let text = '';
  socket.setEncoding('utf8').setNoDelay(true);
  socket.on('data', (chunk: string) => {
    const at = performance.now();
    const lines = (text + chunk).split('\n');
    text = lines.pop()!;
    for (const line of lines) take(line, at);
  });
  // Not `close`, which comes a turn or more after the connection has ended: by then the next may have registered.
  socket.on('end', () => end('lost'));
  socket.on('error', () => end('lost'));
}

/** A parent that is gone needs no observer. */
function endWithParent(): void {
  createInterface({ input: process.stdin }).on('close', () => process.exit(0));
}

if (process.argv[2] === 'serve') {
  endWithParent();
  const server = createServer(serve);
  server.listen(0, '127.0.0.1', () => say({ kind: 'listening', port: (server.address() as AddressInfo).port }));
}
