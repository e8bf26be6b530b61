import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertNotEquals, assertStringIncludes } from '@std/assert';
import {
  type HandshakeEffect,
  type HandshakeSetup,
  type HandshakeState,
  initialHandshake,
  rejectCloseCodes,
  rejectCodeOf,
  stepHandshake,
} from '../../src/transport/handshake.ts';
import { encodeHello, encodeProof, type Hello } from '../../src/transport/hello.ts';
import type { FrameKeys } from '../../src/transport/frame_keys.ts';
import { importSecret, type Secret } from '../../src/transport/secret_keys.ts';

function hello(side: Hello['side'], change: Partial<Hello> = {}): Hello {
  const initiates = side === 'initiator';
  return {
    side,
    secured: true,
    integrity: false,
    clusterName: 'c',
    address: initiates ? '127.0.0.1:1' : '127.0.0.1:2',
    uid: initiates ? 'a' : 'b',
    runtime: 'bun',
    roles: ['r'],
    nonce: new Uint8Array(32).fill(initiates ? 1 : 2),
    ...change,
  };
}

/** One side with its keys; effects run at once. */
class Party {
  readonly sent: Uint8Array[] = [];
  readonly outcomes: HandshakeEffect[] = [];
  readonly setup: HandshakeSetup;
  frameKeys: FrameKeys | undefined;
  readonly #secret: Secret | undefined;
  #state: HandshakeState = initialHandshake;

  constructor(own: Hello, secret: Secret | undefined, dialled?: string) {
    this.setup = { own, dialled };
    this.#secret = secret;
  }

  async feed(event: Parameters<typeof stepHandshake>[2]): Promise<void> {
    const step = stepHandshake(this.setup, this.#state, event);
    this.#state = step.state;
    const keys = await importSecret(this.#secret);
    for (const effect of step.effects) {
      if (effect.kind === 'send') this.sent.push(effect.bytes);
      else if (effect.kind === 'sign') await this.feed({ kind: 'signed', mac: await keys.sign(effect.message) });
      else if (effect.kind === 'verify') {
        await this.feed({ kind: 'verified', secret: await keys.verify(effect.message, effect.mac) });
      } else if (effect.kind === 'derive') {
        const { initiator, responder } = effect.messages;
        const [out, incoming] = this.setup.own.side === 'initiator' ? [initiator, responder] : [responder, initiator];
        this.frameKeys = await keys.frameKeys(effect.secret, { out, in: incoming });
        await this.feed({ kind: 'derived' });
      } else this.outcomes.push(effect);
    }
  }

  get code(): string | undefined {
    const last = this.outcomes.at(-1);
    return last?.kind === 'reject' ? last.code : last?.kind;
  }

  get detail(): string {
    const last = this.outcomes.at(-1);
    return last?.kind === 'reject' ? last.detail : '';
  }
}

/** Carries frames between the two until neither sends any more; returns what travelled. */
async function run(a: Party, b: Party): Promise<Uint8Array[]> {
  await a.feed({ kind: 'opened' });
  await b.feed({ kind: 'opened' });
  const wire: Uint8Array[] = [];
  while (a.sent.length + b.sent.length > 0) {
    for (const [from, to] of [[a, b], [b, a]] as const) {
      for (const bytes of from.sent.splice(0)) {
        wire.push(bytes);
        await to.feed({ kind: 'frame', bytes });
      }
    }
  }
  return wire;
}

function parties(
  secretA: Secret | undefined,
  secretB: Secret | undefined,
  a: Partial<Hello> = {},
  b: Partial<Hello> = {},
) {
  return [
    new Party(hello('initiator', { secured: secretA !== undefined, ...a }), secretA, '127.0.0.1:2'),
    new Party(hello('responder', { secured: secretB !== undefined, ...b }), secretB),
  ] as const;
}

describe('handshake', () => {
  test('the same secret: both sides know the other', async () => {
    for (const secret of ['s3cret', undefined]) {
      const [a, b] = parties(secret, secret);
      const wire = await run(a, b);
      assertEquals(wire.length, 4);
      const [left, right] = [a.outcomes[0], b.outcomes[0]];
      assert(left?.kind === 'established' && right?.kind === 'established');
      assertEquals([left.peer.uid, right.peer.uid, right.peer.roles], ['b', 'a', ['r']]);
      assertFalse('nonce' in left.peer);
    }
  });

  test('frame integrity is on when either side asks, and both derive the same keys', async () => {
    const rotating: Secret = { current: 'new', also: ['old'] };
    for (const [left, right] of [[true, false], [false, true], [true, true]] as const) {
      for (
        const [one, two] of [['s', 's'], [{ current: 'old', also: ['new'] }, rotating], [rotating, 'new']] as const
      ) {
        const [a, b] = parties(one, two, { integrity: left }, { integrity: right });
        assertEquals((await run(a, b)).length, 4);
        assertEquals([a.code, b.code], ['established', 'established']);
        const [near, far] = [a.frameKeys, b.frameKeys];
        assert(near !== undefined && far !== undefined);
        const frame = Uint8Array.of(1, 2, 3);
        assertEquals(await far.open(await near.seal(frame, 7), 7), frame);
        assertEquals(await near.open(await far.seal(frame, 2 ** 33), 2 ** 33), frame);
        // Another number, and one's own frame sent back, are forgeries.
        assertEquals(await far.open(await near.seal(frame, 7), 8), undefined);
        assertEquals(await near.open(await near.seal(frame, 7), 7), undefined);
      }
    }
    const [a, b] = parties('s', 's');
    await run(a, b);
    assertEquals([a.frameKeys, b.frameKeys], [undefined, undefined]);
  });

  test('S7: another secret is found out by the responder first, which has proved nothing yet', async () => {
    const [a, b] = parties('right', 'wrong');
    const wire = await run(a, b);
    assertEquals([b.code, a.code], ['secret', undefined]);
    assertEquals(wire.map((bytes) => bytes[0]), [1, 1, 2]);
    assertFalse(b.detail.includes('right') || b.detail.includes('wrong'));
  });

  test('S7: one side without a secret is told so', async () => {
    for (const [secretA, secretB] of [['s', undefined], [undefined, 's']] as const) {
      const [a, b] = parties(secretA, secretB);
      await run(a, b);
      assertEquals(b.code, 'secret');
      assertStringIncludes(b.detail, secretB === undefined ? 'the peer has a secret' : 'this node has a secret');
    }
  });

  test('a peer that lies about having a secret still fails', async () => {
    const [a, b] = parties(undefined, 's', { secured: true });
    await run(a, b);
    assertEquals(b.code, 'secret');
  });

  test('rotation: old and new secret work together as long as each side accepts the other one', async () => {
    const stages: Secret[] = ['old', { current: 'old', also: ['new'] }, { current: 'new', also: ['old'] }, 'new'];
    for (let i = 0; i + 1 < stages.length; i++) {
      for (const [x, y] of [[stages[i], stages[i + 1]], [stages[i + 1], stages[i]]]) {
        const [a, b] = parties(x, y);
        await run(a, b);
        assertEquals([a.code, b.code], ['established', 'established']);
      }
    }
    const [a, b] = parties('old', 'new');
    await run(a, b);
    assertEquals(b.code, 'secret');
  });

  test('S7: a proof sent back to its maker is refused', async () => {
    const victim = new Party(hello('initiator'), 's', '127.0.0.1:2');
    await victim.feed({ kind: 'opened' });
    victim.sent.splice(0);
    await victim.feed({ kind: 'frame', bytes: encodeHello(hello('responder')) });
    const proof = victim.sent.pop() as Uint8Array;
    await victim.feed({ kind: 'frame', bytes: proof });
    assertEquals(victim.code, 'secret');
  });

  test('S7: a hello sent back to its maker is refused', async () => {
    const victim = new Party(hello('initiator'), 's', '127.0.0.1:2');
    await victim.feed({ kind: 'opened' });
    await victim.feed({ kind: 'frame', bytes: victim.sent[0] as Uint8Array });
    assertEquals(victim.code, 'malformed');
  });

  test('S7: a recorded handshake cannot be replayed against a new nonce', async () => {
    const [a, b] = parties('s', 's');
    const [recordedHello, , recordedProof] = await run(a, b);
    const fresh = new Party(hello('responder', { nonce: new Uint8Array(32).fill(9) }), 's');
    await fresh.feed({ kind: 'frame', bytes: recordedHello as Uint8Array });
    await fresh.feed({ kind: 'frame', bytes: recordedProof as Uint8Array });
    assertEquals(fresh.code, 'secret');
  });

  test('S7: nothing in either hello can be changed on the way', async () => {
    for (const change of [{ uid: 'x' }, { roles: ['admin'] }, { address: '127.0.0.1:9' }, { runtime: 'deno' }]) {
      const [a, b] = parties('s', 's');
      await a.feed({ kind: 'opened' });
      a.sent.splice(0);
      await b.feed({ kind: 'frame', bytes: encodeHello(hello('initiator', change)) });
      await a.feed({ kind: 'frame', bytes: b.sent.pop() as Uint8Array });
      await b.feed({ kind: 'frame', bytes: a.sent.pop() as Uint8Array });
      assertEquals(b.code, 'secret');
    }
  });

  test('mismatches are explained by name', async () => {
    const cases: [Partial<Hello>, string, string][] = [
      [{ clusterName: 'other' }, 'cluster-name', "in cluster 'c', the peer in 'other'"],
      [{ uid: 'b' }, 'self', '127.0.0.1:2 is this node itself'],
      [{ address: '127.0.0.1:2' }, 'address-claimed', 'two nodes claim 127.0.0.1:2 (uids b, a)'],
    ];
    for (const [change, code, detail] of cases) {
      const [a, b] = parties('s', 's', change);
      await run(a, b);
      assertEquals(b.code, code);
      assertStringIncludes(b.detail, detail);
      assert(new TextEncoder().encode(`${code}: ${detail}`).byteLength <= 123);
    }
    const [a, b] = parties('s', 's', {}, { address: '127.0.0.1:3' });
    await run(a, b);
    assertEquals(a.code, 'wrong-address');
    assertStringIncludes(a.detail, 'dialled 127.0.0.1:2, the node there advertises 127.0.0.1:3');
  });

  test('another protocol version is refused with both versions', async () => {
    const b = new Party(hello('responder'), 's');
    await b.feed({ kind: 'frame', bytes: Uint8Array.of(1, 0, 9, 1, 2, 3) });
    assertEquals([b.code, b.detail], ['protocol', 'this node speaks protocol 1, the peer 9']);
  });

  test('frames out of turn are refused', async () => {
    const proof = encodeProof(new Uint8Array(32));
    const early = new Party(hello('responder'), 's');
    await early.feed({ kind: 'frame', bytes: proof });
    assertEquals(early.code, 'malformed');
    const twice = new Party(hello('responder'), 's');
    await twice.feed({ kind: 'frame', bytes: encodeHello(hello('initiator')) });
    await twice.feed({ kind: 'frame', bytes: encodeHello(hello('initiator')) });
    assertEquals(twice.code, 'malformed');
  });

  test('after its end nothing has an effect', async () => {
    const b = new Party(hello('responder'), 's');
    await b.feed({ kind: 'deadline' });
    assertEquals(b.code, 'deadline');
    await b.feed({ kind: 'frame', bytes: encodeHello(hello('initiator')) });
    await b.feed({ kind: 'deadline' });
    assertEquals([b.outcomes.length, b.sent.length], [1, 0]);
  });

  test('close codes and reject codes map both ways', () => {
    for (const [code, closeCode] of Object.entries(rejectCloseCodes)) {
      assertEquals(rejectCodeOf(closeCode), code as 'self');
      assert(closeCode >= 4000 && closeCode <= 4999);
    }
    assertEquals(rejectCodeOf(1000), undefined);
    assertNotEquals(new Set(Object.values(rejectCloseCodes)).size, 0);
  });
});
