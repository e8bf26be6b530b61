/** What the targets that fuzz whole connections share: sockets whose frames the fuzzer carries, and an attacker on the path. */
import type { Environment } from '../../src/actor/environment.ts';
import type { Link, LinkClose } from '../../src/transport/contract.ts';
import { ownerFailedCode } from '../../src/transport/protocol.ts';
import type { Socket } from '../../src/transport/runtime.ts';
import type { Source } from './source.ts';

/** One side's socket. What it sends stays here until somebody delivers it on the other side. */
export class Wire implements Socket {
  readonly sent: Uint8Array[] = [];
  readonly delivered: Uint8Array[] = [];
  /** What its owner has closed it with, first. */
  closing: { readonly code: number; readonly afterFrames: number } | undefined;
  /** Of `delivered`, those before the end of the connection; undefined while it lasts. */
  deliveredAtEnd: number | undefined;
  takes = true;
  onMessage: (bytes: Uint8Array) => void = () => {};
  onClose: (close: LinkClose) => void = () => {};
  onDrain: () => void = () => {};

  send(bytes: Uint8Array): boolean {
    if (this.takes) this.sent.push(bytes.slice());
    return this.takes;
  }

  bufferedBytes(): number {
    return 0;
  }

  close(code: number): void {
    this.closing ??= { code, afterFrames: this.sent.length };
  }

  /** As the adapters do it: what the owner throws costs the connection. */
  deliver(bytes: Uint8Array): void {
    this.delivered.push(bytes);
    try {
      this.onMessage(bytes.slice());
    } catch {
      this.close(ownerFailedCode);
    }
  }

  end(code = this.closing?.code ?? 1006): void {
    if (this.deliveredAtEnd !== undefined) return;
    this.deliveredAtEnd = this.delivered.length;
    this.onClose({ code, reason: '', clean: code !== 1006 });
  }
}

/** One side of a connection, and all that its owner was told. */
export class End {
  readonly name: string;
  readonly wire = new Wire();
  readonly links: Link[] = [];
  readonly heard: Uint8Array[] = [];
  readonly closed: LinkClose[] = [];
  /** Frames that its owner has sent over the link. */
  readonly said: Uint8Array[] = [];
  failed = 0;
  /** Its owner has closed the link, and may not hear what comes now. */
  left = false;
  readonly environment: Environment;
  readonly #timers = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
    const silent = () => {};
    this.environment = {
      clock: { now: () => 0, wall: () => 0 },
      timers: {
        set: (_delayMs, run) => {
          this.#timers.add(run);
          return () => this.#timers.delete(run);
        },
      },
      random: { next: () => 0.5 },
      turns: { schedule: (run) => queueMicrotask(run) },
      log: { level: 'debug', debug: silent, info: silent, warn: silent, error: silent },
    };
  }

  get over(): boolean {
    return this.failed > 0 || this.closed.length > 0;
  }

  say(bytes: Uint8Array): void {
    const [link] = this.links;
    if (link === undefined || this.left || this.over || this.wire.closing !== undefined) return;
    this.said.push(bytes);
    link.send(bytes);
  }

  leave(code: number): void {
    if (this.links.length === 0) return;
    this.left = true;
    this.links[0]!.close(code, 'done');
  }

  runTimers(): void {
    for (const run of [...this.#timers]) {
      this.#timers.delete(run);
      run();
    }
  }

  /** Whatever happens, it is told of one end, once; of a link's only when it had one. */
  checkTold(): void {
    const { links: { length: opened }, failed, closed: { length: closed } } = this;
    if (opened + failed !== 1 || closed !== opened) {
      throw new Error(`${this.name} was told ${opened} links, ${failed} failures and ${closed} ends`);
    }
  }

  /** What it has handed on is what the other side's owner sent, from the first frame on. */
  checkHeard(from: readonly Uint8Array[]): void {
    if (this.links.length === 0 && this.heard.length > 0) {
      throw new Error(`${this.name} handed on frames without a link`);
    }
    this.heard.forEach((bytes, index) => {
      if (!same(bytes, from[index])) throw new Error(`${this.name} handed on frame ${index}, which nobody sent so`);
    });
  }
}

/** The frames of a side as somebody on the path hands them on: some changed, cut, repeated, swapped, left out, invented. */
export function tampered(source: Source, frames: readonly Uint8Array[], others: readonly Uint8Array[]): Uint8Array[] {
  const out = [...frames];
  for (let changes = source.int(4); changes > 0; changes--) {
    const at = source.int(out.length + 1);
    const frame = out[at] ?? source.bytes(40);
    switch (source.int(7)) {
      case 0:
        out[at] = source.damaged(frame);
        break;
      case 1:
        out.splice(at, 1);
        break;
      case 2:
        out.splice(source.int(out.length + 1), 0, frame);
        break;
      case 3: {
        const with_ = source.int(out.length + 1);
        if (at < out.length && with_ < out.length) [out[at], out[with_]] = [out[with_]!, frame];
        break;
      }
      case 4:
        out[at] = frame.slice(0, source.int(Math.min(frame.length, 17) + 1));
        break;
      case 5:
        out.splice(at, 0, source.bytes(60));
        break;
      default:
        out.splice(at, 0, others.length === 0 ? source.bytes(15) : source.pick(others));
    }
  }
  return out;
}

export function same(a: Uint8Array, b: Uint8Array | undefined): boolean {
  if (a.length !== b?.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}

export function randomBytes(source: Source, length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, () => source.int(256));
}

/** Content of a frame: mostly small, once in a while what the background takes longer for. */
export function content(source: Source): Uint8Array {
  return source.chance(60) ? new Uint8Array(source.int(60_000)).fill(source.int(256)) : source.bytes(30);
}
