/**
 * An exhaustive search over everything an attacker on the network can make of a few handshakes that run at the same time.
 *
 * The honest sides are the production code (`stepHandshake`, hellos as bytes); only the HMAC is a symbol that nobody without
 * the secret can make (Dolev and Yao, On the Security of Public Key Protocols, 1983). The attacker hears every frame, and
 * may hand any frame it has heard or can make to any side at any time, in any order, any number of times, or never: replay,
 * reflection, relaying, splicing of parallel sessions, changed hellos and downgrades are all among its moves. A state is
 * what each session has taken in; the search visits each one once and looks at every session that has come to an end.
 *
 * Left out without loss: frames at which a session gives up. What the attacker could do after that, it can do as well by
 * never handing over the frame, since a session that gives up says nothing more.
 */
import {
  type HandshakeEffect,
  type HandshakeEvent,
  type HandshakeSetup,
  type HandshakeState,
  initialHandshake,
  stepHandshake,
} from '../../src/transport/handshake.ts';
import { decodeHandshakeFrame, encodeHello, encodeProof, type Hello, macBytes } from '../../src/transport/hello.ts';
import { noSecret } from '../../src/transport/secret_keys.ts';

/** One honest session: a node's side of one connection. */
export interface Honest {
  readonly name: string;
  readonly own: Hello;
  readonly dialled?: string;
  /** The own secret, then others that are accepted. */
  readonly secrets: readonly string[];
}

export interface SearchOptions {
  readonly sessions: readonly Honest[];
  /** What of a message a MAC covers; the tests of the search itself leave something out. Default: all of it. */
  readonly covered?: (message: Uint8Array) => Uint8Array;
  /** Secrets that the attacker has. Default none. */
  readonly stolen?: readonly string[];
}

export interface SearchResult {
  readonly states: number;
  /** Ends of sessions with a link that keep the promise, each counted once. */
  readonly links: ReadonlySet<string>;
  /** What was broken, in words; empty when the promise holds. */
  readonly broken: readonly string[];
}

/** Where a session is. */
interface Place {
  /** Its number among the places of this session. */
  readonly id: number;
  readonly state: HandshakeState;
  /** Frames it has sent so far, as numbers of the frame table. */
  readonly sent: readonly number[];
  readonly heardHello: number | undefined;
  readonly linked: boolean;
  /** The key of its frames, where they are sealed. */
  readonly frameKey: number | undefined;
}

/** Numbers of the places of one session; four of them make the key of a state. */
const maxPlaces = 2 ** 12;

export function searchHandshakes(options: SearchOptions): SearchResult {
  return new Search(options).run();
}

class Search {
  readonly #options: SearchOptions;
  /** Byte strings by number, and the other way round. */
  readonly #texts: Uint8Array[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #places: number[] = [];
  readonly #steps = new Map<string, Place | undefined>();
  /** What a place may become, by what is known. */
  readonly #next = new Map<string, readonly Place[]>();
  readonly #knowledge = new Map<string, ReadonlySet<number>>();
  readonly #macs = new Map<string, Uint8Array>();
  readonly #broken = new Set<string>();
  readonly #links = new Set<string>();

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  run(): SearchResult {
    const start = this.#options.sessions.map((_, index) => this.#opened(index));
    const seen = new Set([keyOf(start)]);
    const todo = [start];
    for (let places = todo.pop(); places !== undefined; places = todo.pop()) {
      this.#check(places);
      const known = [...new Set(places.flatMap(({ sent }) => sent))].toSorted((a, b) => a - b);
      const knownKey = known.join();
      for (let index = 0; index < places.length; index++) {
        for (const after of this.#after(index, places[index]!, known, knownKey)) {
          const next = places.with(index, after);
          const key = keyOf(next);
          if (seen.has(key)) continue;
          seen.add(key);
          todo.push(next);
        }
      }
    }
    return { states: seen.size, links: this.#links, broken: [...this.#broken] };
  }

  /** What this session becomes with each frame that the attacker could hand it. */
  #after(index: number, place: Place, heard: readonly number[], heardKey: string): readonly Place[] {
    if (place.state.kind === 'ended') return [];
    const key = `${index} ${place.id} ${heardKey}`;
    const known = this.#next.get(key);
    if (known !== undefined) return known;
    const frames = new Set([...this.#known(heard, heardKey), ...this.#forged(place)]);
    const next = [...frames].map((frame) => this.#step(index, place, frame))
      .filter((after) => after !== undefined);
    this.#next.set(key, next);
    return next;
  }

  /** Everything that the attacker can send once it has heard these frames. */
  #known(heard: readonly number[], key: string): ReadonlySet<number> {
    const before = this.#knowledge.get(key);
    if (before !== undefined) return before;
    const known = new Set([...heard, this.#frame(encodeProof(new Uint8Array(macBytes)))]);
    const hellos = heard.filter((frame) => this.#texts[frame]?.[0] === 1);
    const nonces = hellos.map((frame) => helloOf(this.#texts[frame]!).nonce);
    for (const frame of hellos) for (const variant of this.#variantsOf(frame, nonces)) known.add(variant);
    for (const frame of this.#ownHellos(nonces)) known.add(frame);
    this.#knowledge.set(key, known);
    return known;
  }

  /** A hello with each field changed that could matter, and with every nonce that was ever on the wire. */
  #variantsOf(frame: number, nonces: readonly Uint8Array[]): readonly number[] {
    const bytes = this.#texts[frame]!;
    const hello = helloOf(bytes);
    const changes: Partial<Hello>[] = [
      { side: hello.side === 'initiator' ? 'responder' : 'initiator' },
      { integrity: !hello.integrity },
      { secured: false, integrity: false },
      { uid: 'someone-else' },
      { roles: [...hello.roles, 'admin'] },
      ...nonces.map((nonce) => ({ nonce })),
      ...nonces.map((nonce) => ({ nonce, side: hello.side === 'initiator' ? 'responder' : 'initiator' } as const)),
    ];
    const frames = changes.map((change) => this.#frame(encodeHello({ ...hello, ...change })));
    const older = Uint8Array.from(bytes);
    older[2] = (older[2] ?? 0) - 1;
    return [...frames, this.#frame(older)];
  }

  /** Hellos of a node that the attacker has made up. */
  #ownHellos(nonces: readonly Uint8Array[]): readonly number[] {
    const model = this.#options.sessions[0]!.own;
    const own = { ...model, uid: 'evil', address: '127.0.0.1:666', integrity: false };
    return (['initiator', 'responder'] as const).flatMap((side) =>
      [new Uint8Array(model.nonce.byteLength), ...nonces].map((nonce) =>
        this.#frame(encodeHello({ ...own, side, nonce }))
      )
    );
  }

  /** Proofs that the attacker makes itself with a stolen secret, for what this session waits for. */
  #forged({ state }: Place): readonly number[] {
    if (state.kind !== 'awaiting-proof') return [];
    const { initiator, responder } = state.transcript;
    return (this.#options.stolen ?? []).flatMap((secret) =>
      [initiator, responder].map((message) => this.#frame(encodeProof(this.#mac(secret, message))))
    );
  }

  #opened(index: number): Place {
    const state = initialHandshake;
    const place = { id: 0, state, sent: [], heardHello: undefined, linked: false, frameKey: undefined };
    return this.#feed(this.#options.sessions[index]!, place, { kind: 'opened' });
  }

  /** Undefined where the session gives up. */
  #step(index: number, place: Place, frame: number): Place | undefined {
    const key = `${index} ${place.id} ${frame}`;
    if (this.#steps.has(key)) return this.#steps.get(key);
    const bytes = this.#texts[frame]!;
    const heardHello = place.heardHello ?? frame;
    const after = this.#feed(this.#options.sessions[index]!, { ...place, heardHello }, { kind: 'frame', bytes });
    const next = after.state.kind === 'ended' && !after.linked ? undefined : { ...after, id: this.#newPlace(index) };
    this.#steps.set(key, next);
    return next;
  }

  #newPlace(index: number): number {
    const id = (this.#places[index] ?? 0) + 1;
    if (id >= maxPlaces) throw new Error('too many places');
    this.#places[index] = id;
    return id;
  }

  #feed(session: Honest, place: Place, event: HandshakeEvent): Place {
    const setup: HandshakeSetup = { own: session.own, dialled: session.dialled };
    const { state, effects } = stepHandshake(setup, place.state, event);
    return effects.reduce<Place>((now, effect) => this.#effect(session, now, effect), { ...place, state });
  }

  #effect(session: Honest, place: Place, effect: HandshakeEffect): Place {
    switch (effect.kind) {
      case 'send':
        return { ...place, sent: [...place.sent, this.#frame(effect.bytes)] };
      case 'sign':
        return this.#feed(session, place, { kind: 'signed', mac: this.#mac(session.secrets[0]!, effect.message) });
      case 'verify': {
        const secret = session.secrets.findIndex((each) => same(this.#mac(each, effect.message), effect.mac));
        return this.#feed(session, place, { kind: 'verified', secret: secret < 0 ? noSecret : secret });
      }
      case 'derive': {
        const frameKey = this.#frame(this.#mac(session.secrets[effect.secret]!, effect.messages.initiator));
        return this.#feed(session, { ...place, frameKey }, { kind: 'derived' });
      }
      case 'established':
        return { ...place, linked: true };
      case 'reject':
        return place;
      default:
        return effect satisfies never;
    }
  }

  /** One symbol for each secret and covered message: 32 bytes that nothing else gives. */
  #mac(secret: string, message: Uint8Array): Uint8Array {
    const key = `${secret} ${this.#frame(this.#options.covered?.(message) ?? message)}`;
    const known = this.#macs.get(key);
    if (known !== undefined) return known;
    const mac = new Uint8Array(macBytes).fill(0xaa);
    new DataView(mac.buffer).setUint32(0, this.#macs.size + 1);
    this.#macs.set(key, mac);
    return mac;
  }

  #frame(bytes: Uint8Array): number {
    const text = String.fromCharCode(...bytes);
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#texts.length);
    return this.#texts.push(bytes) - 1;
  }

  /**
   * The promise (agreement, injective and on both identities, both nonces and the keys): who has a link has it with a session
   * of the node it believes to talk to, which has heard exactly this side's hello; no two links have the same partner.
   */
  #check(places: readonly Place[]): void {
    const { sessions } = this.#options;
    const partners = new Map<number, string>();
    places.forEach((place, index) => {
      if (!place.linked) return;
      const { name, own } = sessions[index]!;
      const partner = places.findIndex((other, at) => {
        const { own: theirs } = sessions[at]!;
        return at !== index && theirs.side !== own.side && place.heardHello === this.#frame(encodeHello(theirs)) &&
          other.heardHello === this.#frame(encodeHello(own));
      });
      if (partner < 0) return void this.#broken.add(`${name} has a link with nobody honest`);
      const taken = partners.get(partner);
      if (taken !== undefined) this.#broken.add(`${name} and ${taken} have a link with the same session`);
      partners.set(partner, name);
      const other = places[partner]!;
      if (other.linked && other.frameKey !== place.frameKey) {
        this.#broken.add(`${name} and its partner have other keys`);
      }
      const wanted = own.integrity || sessions[partner]!.own.integrity;
      if (wanted !== (place.frameKey !== undefined)) this.#broken.add(`${name}: frame integrity was negotiated away`);
      this.#links.add(`${name} with ${sessions[partner]!.name}`);
    });
  }
}

function helloOf(bytes: Uint8Array): Hello {
  const frame = decodeHandshakeFrame(bytes);
  if (frame.kind !== 'hello') throw new Error('no hello');
  return frame.hello;
}

function keyOf(places: readonly Place[]): number {
  return places.reduce((key, { id }) => key * maxPlaces + id, 0);
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
