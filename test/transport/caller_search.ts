/**
 * The exhaustive search of `handshake_search.ts` for the handshake of callers: what an attacker who hears every frame, and may
 * hand any frame it has heard or can make to any side in any order, can make of a few handshakes at the same time.
 *
 * The honest sides are the production machines; only the HMAC is a symbol that nobody without the token can make. A machine is
 * made anew for each sequence of frames that it may have taken in.
 */
import { callerHello, keyBytes, nodeHello } from '../../src/transport/caller_handshake.ts';
import { callerInitiator } from '../../src/transport/caller_initiator.ts';
import { callerResponder } from '../../src/transport/caller_responder.ts';
import type { HandshakeEffect, HandshakeEvent, HandshakeMachine } from '../../src/transport/handshake.ts';
import { helloTags, macBytes, nonceBytes } from '../../src/transport/protocol.ts';
import { noSecret } from '../../src/transport/secret_keys.ts';

/** One honest session: a caller with a token, or a node that accepts some. */
export interface HonestSide {
  readonly name: string;
  readonly side: 'caller' | 'node';
  readonly tokens: readonly string[];
  readonly nonce: Uint8Array;
  readonly sealing: boolean;
}

export interface CallerSearchOptions {
  readonly sessions: readonly HonestSide[];
  /** What of a message a MAC covers; the tests of the search itself leave something out. Default: all of it. */
  readonly covered?: (message: Uint8Array) => Uint8Array;
}

export interface CallerSearchResult {
  readonly states: number;
  readonly links: ReadonlySet<string>;
  /** What was broken, in words. */
  readonly broken: readonly string[];
}

/** Where a session is after the frames it has taken in. */
interface Place {
  readonly key: string;
  readonly taken: readonly number[];
  readonly sent: readonly number[];
  readonly linked: boolean;
  /** By whose proof a node has let somebody in. */
  readonly token: string | undefined;
  /** The keys of both directions. */
  readonly frameKeys: readonly number[];
}

const cluster = 'shop';
const nonceAt = 3;
const keyAt = nonceAt + nonceBytes;

export function searchCallerHandshakes(options: CallerSearchOptions): CallerSearchResult {
  return new Search(options).run();
}

class Search {
  readonly #options: CallerSearchOptions;
  readonly #texts: Uint8Array<ArrayBuffer>[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #macs = new Map<string, number>();
  readonly #places = new Map<string, Place | undefined>();
  readonly #nexts = new Map<string, readonly Place[]>();
  readonly #knowledge = new Map<string, readonly number[]>();
  readonly #broken = new Set<string>();
  readonly #links = new Set<string>();

  constructor(options: CallerSearchOptions) {
    this.#options = options;
  }

  run(): CallerSearchResult {
    const start = this.#options.sessions.map((_, index) => this.#after(index, [])!);
    const seen = new Set([keyOf(start)]);
    const todo = [start];
    for (let places = todo.pop(); places !== undefined; places = todo.pop()) {
      this.#check(places);
      const heard = [...new Set(places.flatMap(({ sent }) => sent))].toSorted((a, b) => a - b);
      places.forEach((place, index) => {
        for (const after of this.#next(index, place, heard)) {
          const next = places.with(index, after);
          const key = keyOf(next);
          if (seen.has(key)) continue;
          seen.add(key);
          todo.push(next);
        }
      });
    }
    return { states: seen.size, links: this.#links, broken: [...this.#broken] };
  }

  /** What this session becomes with each frame that the attacker could hand it. */
  #next(index: number, place: Place, heard: readonly number[]): readonly Place[] {
    if (place.linked) return [];
    const key = `${place.key} after ${heard.join()}`;
    const before = this.#nexts.get(key);
    if (before !== undefined) return before;
    const next = this.#known(heard).map((frame) => this.#after(index, [...place.taken, frame]))
      .filter((after) => after !== undefined);
    this.#nexts.set(key, next);
    return next;
  }

  /** Everything that the attacker can send once it has heard these frames. */
  #known(heard: readonly number[]): readonly number[] {
    const key = heard.join();
    const before = this.#knowledge.get(key);
    if (before !== undefined) return before;
    const hellos = heard.map((frame) => this.#texts[frame]!).filter(([tag]) => tag !== helloTags.proof);
    const nonces = hellos.map((hello) => hello.slice(nonceAt, nonceAt + nonceBytes));
    const made = [proofOf(new Uint8Array(macBytes)), ...hellos.flatMap((hello) => variantsOf(hello, nonces))];
    for (const sealing of [true, false]) {
      const nonce = new Uint8Array(nonceBytes);
      made.push(callerHello(nonce, new Uint8Array(keyBytes), cluster, sealing), nodeHello(nonce, cluster, sealing));
    }
    const known = [...new Set([...heard, ...made.map((bytes) => this.#frame(bytes))])];
    this.#knowledge.set(key, known);
    return known;
  }

  /** Undefined where the session gives up on one of them. */
  #after(index: number, taken: readonly number[]): Place | undefined {
    const key = `${index} ${taken.join()}`;
    if (!this.#places.has(key)) this.#places.set(key, this.#replay(index, taken, key));
    return this.#places.get(key);
  }

  #replay(index: number, taken: readonly number[], key: string): Place | undefined {
    const session = this.#options.sessions[index]!;
    const machine = machineOf(session);
    const run = { sent: [] as number[], linked: false, gaveUp: false, token: undefined as string | undefined };
    let frameKeys: readonly number[] = [];
    const feed = (event: HandshakeEvent): void => machine.feed(event).forEach(perform);
    const perform = (effect: HandshakeEffect): void => {
      switch (effect.kind) {
        case 'send':
          return void run.sent.push(this.#frame(effect.bytes));
        case 'sign':
          return feed({ kind: 'signed', mac: this.#macBytes(run.token ?? session.tokens[0]!, effect.message) });
        case 'verify': {
          const secret = session.tokens.findIndex((each) => same(this.#macBytes(each, effect.message), effect.mac));
          run.token = session.tokens[secret];
          return feed({ kind: 'verified', secret: secret < 0 ? noSecret : secret });
        }
        case 'derive': {
          const { initiator, responder } = effect.messages;
          frameKeys = [initiator, responder].map((message) => this.#mac(run.token!, message));
          return feed({ kind: 'derived' });
        }
        case 'established':
          run.linked = true;
          return;
        case 'reject':
          run.gaveUp = true;
          return;
        default:
          return effect satisfies never;
      }
    };
    feed({ kind: 'opened' });
    for (const frame of taken) feed({ kind: 'frame', bytes: this.#texts[frame]! });
    if (run.gaveUp) return undefined;
    return { key, taken, sent: run.sent, linked: run.linked, token: run.token, frameKeys };
  }

  /** One symbol for each token and covered message. */
  #mac(token: string, message: Uint8Array): number {
    const key = `${token} ${String.fromCharCode(...(this.#options.covered?.(message) ?? message))}`;
    const known = this.#macs.get(key) ?? this.#macs.size + 1;
    this.#macs.set(key, known);
    return known;
  }

  #macBytes(token: string, message: Uint8Array): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(macBytes).fill(0xaa);
    new DataView(bytes.buffer).setUint32(0, this.#mac(token, message));
    return bytes;
  }

  #frame(bytes: Uint8Array): number {
    const text = String.fromCharCode(...bytes);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#texts.length);
    return this.#texts.push(Uint8Array.from(bytes)) - 1;
  }

  /**
   * The promise: who has a link has it with one session of a side that holds the same token, both have heard the other's hello
   * as it was said, frames are sealed exactly where one of them asks for it, under keys that are the same on both, differ by
   * direction, and are nothing that was ever on the wire.
   */
  #check(places: readonly Place[]): void {
    const { sessions } = this.#options;
    const partners = new Map<number, string>();
    const proofs = places.flatMap(({ sent }) => sent).map((frame) => this.#texts[frame]!)
      .filter(([tag]) => tag === helloTags.proof).map((bytes) => new DataView(bytes.buffer).getUint32(1));
    places.forEach((place, index) => {
      if (!place.linked) return;
      const { name, side, sealing } = sessions[index]!;
      const hello = (at: number) => places[at]!.sent[0];
      const partner = places.findIndex((other, at) =>
        sessions[at]!.side !== side && place.taken[0] === hello(at) && other.taken[0] === hello(index)
      );
      if (partner < 0) return void this.#broken.add(`${name} has a link with nobody honest`);
      const other = places[partner]!;
      const them = sessions[partner]!;
      if (partners.has(partner)) this.#broken.add(`${name} and ${partners.get(partner)} share ${them.name}`);
      partners.set(partner, name);
      if (!them.tokens.includes(place.token!)) this.#broken.add(`${name} took ${them.name} for somebody else`);
      if (other.linked && other.frameKeys.join() !== place.frameKeys.join()) {
        this.#broken.add(`${name} and its partner have other keys`);
      }
      if ((sealing || them.sealing) !== (place.frameKeys.length > 0)) {
        this.#broken.add(`${name}: frame integrity was negotiated away`);
      }
      const [out, incoming] = place.frameKeys;
      if (out !== undefined && out === incoming) this.#broken.add(`${name}: one key for both directions`);
      if (place.frameKeys.some((each) => proofs.includes(each))) this.#broken.add(`${name}: a key was on the wire`);
      this.#links.add(`${name} with ${them.name}`);
    });
  }
}

function machineOf({ side, nonce, sealing }: HonestSide): HandshakeMachine {
  if (side === 'node') return callerResponder(cluster, nonce, sealing);
  return callerInitiator({ nonce, key: nonce.slice(0, keyBytes), clusterName: cluster, sealing });
}

/** A hello with each field changed that could matter, and with every nonce that was ever on the wire. */
function variantsOf(hello: Uint8Array<ArrayBuffer>, nonces: readonly Uint8Array[]): readonly Uint8Array[] {
  const changed = (change: (copy: Uint8Array) => void) => {
    const copy = hello.slice();
    change(copy);
    return copy;
  };
  const nonceSwaps = nonces.map((nonce) => changed((copy) => copy.set(nonce, nonceAt)));
  const otherWish = changed((copy) => copy[0] = flipped[copy[0]!]!);
  const isCaller = hello[0] === helloTags.caller || hello[0] === helloTags.sealingCaller;
  if (!isCaller) return [otherWish, ...nonceSwaps];
  const otherKey = changed((copy) => copy[keyAt] = copy[keyAt]! ^ 1);
  return [otherWish, ...nonceSwaps, otherKey, hello.slice(0, hello.length - cluster.length)];
}

/** The tag of the same side that asks for frame integrity, or no longer does. */
const flipped: Readonly<Record<number, number>> = {
  [helloTags.caller]: helloTags.sealingCaller,
  [helloTags.sealingCaller]: helloTags.caller,
  [helloTags.node]: helloTags.sealingNode,
  [helloTags.sealingNode]: helloTags.node,
};

function proofOf(mac: Uint8Array): Uint8Array {
  return Uint8Array.of(helloTags.proof, ...mac);
}

function keyOf(places: readonly Place[]): string {
  return places.map(({ key }) => key).join('|');
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
