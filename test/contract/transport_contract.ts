/** What every `Transport` must do; run against each implementation. */
import { test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import {
  type DialFailure,
  isLink,
  type Link,
  type LinkClose,
  type SeedAnswer,
  type Transport,
  type TransportEvents,
} from '../../src/transport/contract.ts';
import { ListenError } from '../../src/transport/errors.ts';
import { pause, until } from '../transport/local_environment.ts';

export interface NodeOptions {
  readonly uid?: string;
  readonly clusterName?: string;
  readonly roles?: readonly string[];
  /** Default 0: any free one. */
  readonly port?: number;
  readonly seedAnswer?: () => SeedAnswer;
}

/** Each call makes a transport that advertises 127.0.0.1 on the same network as the others. */
export type MakeTransport = (options: NodeOptions) => Transport;

export interface Heard {
  readonly accepted: Link[];
  readonly frames: { link: Link; bytes: Uint8Array }[];
  readonly closed: { link: Link; close: LinkClose }[];
  readonly lost: string[];
}

export interface Node extends Heard {
  readonly transport: Transport;
  readonly address: string;
}

let uids = 0;
/** True while the test is inside a call to a transport: no event may come then. */
let inside = false;

export function within<T>(call: () => T): T {
  inside = true;
  try {
    return call();
  } finally {
    inside = false;
  }
}

export async function startNode(
  make: MakeTransport,
  options: NodeOptions = {},
  onAccept = (_: Link) => {},
): Promise<Node> {
  const transport = make({ uid: `uid-${++uids}`, clusterName: 'c', ...options });
  const heard: Heard = { accepted: [], frames: [], closed: [], lost: [] };
  const outside = (what: string) => assert(!inside, `${what} came inside a call`);
  const events: TransportEvents = {
    accepted(link) {
      outside('accepted');
      heard.accepted.push(link);
      onAccept(link);
    },
    frame(link, bytes) {
      outside('frame');
      heard.frames.push({ link, bytes });
    },
    closed(link, close) {
      outside('closed');
      heard.closed.push({ link, close });
    },
    listenerLost: (why) => void heard.lost.push(why),
  };
  const address = await transport.start(events);
  return { transport, address, ...heard };
}

export function dial(node: Node, address: string): Promise<Link | DialFailure> {
  return new Promise((resolve) => {
    within(() =>
      node.transport.dial(address, (outcome) => {
        assert(!inside, 'done came inside the call');
        resolve(outcome);
      })
    );
  });
}

export async function linked(node: Node, address: string): Promise<Link> {
  const outcome = await dial(node, address);
  if (!isLink(outcome)) throw new Error(`${outcome.reason} ${outcome.code}: ${outcome.detail}`);
  return outcome;
}

export async function failedDial(node: Node, address: string): Promise<DialFailure> {
  const outcome = await dial(node, address);
  if (isLink(outcome)) throw new Error('a link where none should be');
  return outcome;
}

async function pairOf(make: MakeTransport) {
  const a = await startNode(make, { roles: ['blue'] });
  const b = await startNode(make, { roles: ['green', 'small'] });
  const near = await linked(a, b.address);
  await until('accepted', () => b.accepted.length === 1);
  return { a, b, near, far: b.accepted[0] as Link, stop: () => Promise.all([a.transport.stop(), b.transport.stop()]) };
}

export function transportContract(name: string, make: MakeTransport): void {
  identityTests(name, make);
  frameTests(name, make);
  closeTests(name, make);
  dialTests(name, make);
  seedTests(name, make);
  stopTests(name, make);
}

function identityTests(name: string, make: MakeTransport): void {
  test(`${name}: both sides know who is at the other end`, async () => {
    const { a, b, near, far, stop } = await pairOf(make);
    assertEquals([near.dialled, far.dialled], [true, false]);
    assertEquals([near.peer.address, far.peer.address], [b.address, a.address]);
    assertEquals([near.peer.roles, far.peer.roles], [['green', 'small'], ['blue']]);
    assertEquals([near.peer.clusterName, far.peer.clusterName], ['c', 'c']);
    assert(near.peer.uid !== far.peer.uid && near.peer.uid.startsWith('uid-'));
    await stop();
  });

  test(`${name}: a node of another cluster and the node itself are refused with a reason`, async () => {
    const a = await startNode(make);
    const b = await startNode(make, { clusterName: 'other' });
    const other = await failedDial(a, b.address);
    assertEquals([other.reason, other.code], ['rejected', 'cluster-name']);
    assertStringIncludes(other.detail, "'other'");
    const self = await failedDial(a, a.address);
    assertEquals([self.reason, self.code], ['rejected', 'self']);
    assertEquals([a.accepted.length, b.accepted.length], [0, 0]);
    await Promise.all([a.transport.stop(), b.transport.stop()]);
  });
}

function frameTests(name: string, make: MakeTransport): void {
  test(`${name}: frames arrive whole and in order, both ways at once`, async () => {
    const { a, b, near, far, stop } = await pairOf(make);
    for (let i = 0; i < 1_000; i++) {
      const bytes = new Uint8Array(4 + (i % 50) * (i % 7)).fill(i & 255);
      new DataView(bytes.buffer).setUint32(0, i);
      within(() => near.send(bytes));
      within(() => far.send(bytes));
      bytes.fill(255); // What was handed over is the sender's again at once.
    }
    within(() => near.send(new Uint8Array(1024 * 1024).fill(7)));
    await until('all frames', () => a.frames.length === 1_000 && b.frames.length === 1_001);
    for (const { frames } of [a, b]) {
      const numbers = frames.slice(0, 1_000).map(({ bytes }) =>
        new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
      );
      assertEquals(numbers, Array.from({ length: 1_000 }, (_, i) => i));
      assert(frames.every(({ bytes }) => bytes.subarray(4).every((byte) => byte === bytes.at(-1))));
    }
    assertEquals(b.frames[1_000]?.bytes.byteLength, 1024 * 1024);
    assertEquals([a.frames[0]?.link, b.frames[0]?.link], [near, far]);
    await until('nothing is buffered', () => near.bufferedBytes() === 0 && far.bufferedBytes() === 0);
    await stop();
  });

  test(`${name}: frames sent right after the accept come after the dial has been answered`, async () => {
    const burst = (link: Link) => {
      for (let i = 0; i < 100; i++) link.send(Uint8Array.of(i));
    };
    const b = await startNode(make, {}, burst);
    const a = await startNode(make);
    let before = -1;
    const link = await new Promise<Link | DialFailure>((resolve) =>
      a.transport.dial(b.address, (outcome) => {
        before = a.frames.length;
        resolve(outcome);
      })
    );
    await until('the burst', () => a.frames.length === 100);
    assertEquals(before, 0);
    assertEquals(a.frames.map(({ bytes }) => bytes[0]), Array.from({ length: 100 }, (_, i) => i));
    assert(a.frames.every((frame) => frame.link === link));
    await Promise.all([a.transport.stop(), b.transport.stop()]);
  });
}

function closeTests(name: string, make: MakeTransport): void {
  test(`${name}: a close is told once on both sides, after the last frame`, async () => {
    const { a, b, near, far, stop } = await pairOf(make);
    for (let i = 0; i < 50; i++) near.send(Uint8Array.of(i));
    within(() => near.close(4001, 'enough'));
    within(() => near.close(4002, 'again'));
    within(() => near.send(Uint8Array.of(99)));
    await until('both closes', () => a.closed.length === 1 && b.closed.length === 1);
    const close = { code: 4001, reason: 'enough', clean: true };
    assertEquals([a.closed[0]?.close, b.closed[0]?.close], [close, close]);
    assertEquals([a.closed[0]?.link, b.closed[0]?.link], [near, far]);
    assertEquals(b.frames.length, 50);
    within(() => far.send(Uint8Array.of(1)));
    within(() => far.close(4003, 'late'));
    await pause(30);
    assertEquals([a.closed.length, b.closed.length, a.frames.length], [1, 1, 0]);
    await stop();
  });

  test(`${name}: both sides may close at once`, async () => {
    const { a, b, near, far, stop } = await pairOf(make);
    within(() => near.close(4001, 'near'));
    within(() => far.close(4002, 'far'));
    await until('both closes', () => a.closed.length === 1 && b.closed.length === 1);
    assertEquals([a.closed[0]?.close.clean, b.closed[0]?.close.clean], [true, true]);
    await stop();
  });
}

function dialTests(name: string, make: MakeTransport): void {
  test(`${name}: where nothing listens, dial and probe are refused`, async () => {
    const a = await startNode(make);
    const gone = await startNode(make);
    assertEquals(await probe(a, gone.address), 'open');
    await gone.transport.stop();
    const failure = await failedDial(a, gone.address);
    assertEquals(failure.reason, 'refused');
    assertEquals(await probe(a, gone.address), 'refused');
    await a.transport.stop();
  });

  test(`${name}: after a cancel, nobody is called and nothing stays open`, async () => {
    const { a, b, stop } = await pairOf(make);
    let calls = 0;
    const cancels = [
      a.transport.dial(b.address, () => calls++),
      a.transport.probe(b.address, () => calls++),
      a.transport.seed(b.address, () => calls++),
    ];
    for (const cancel of cancels) {
      within(cancel);
      within(cancel);
    }
    await pause(100);
    assertEquals(calls, 0);
    await until('no half link', () => b.accepted.length - b.closed.length === 1);
    assertEquals(a.closed.length, 0);
    await stop();
  });
}

function probe(node: Node, address: string): Promise<string> {
  return new Promise((resolve) => {
    within(() =>
      node.transport.probe(address, (outcome) => {
        assert(!inside, 'done came inside the call');
        resolve(outcome);
      })
    );
  });
}

export function seed(node: Node, address: string): Promise<SeedAnswer | DialFailure> {
  return new Promise((resolve) => {
    within(() =>
      node.transport.seed(address, (answer) => {
        assert(!inside, 'done came inside the call');
        resolve(answer);
      })
    );
  });
}

export function someSeedAnswer(): SeedAnswer {
  return {
    clusterName: 'c',
    protocol: 1,
    fingerprint: 'f',
    address: '127.0.0.1:1',
    uid: 'u',
    clusterId: 'id',
    formedAt: 12,
    members: ['127.0.0.1:1', '[::1]:2', 'host.example:3'],
  };
}

function seedTests(name: string, make: MakeTransport): void {
  test(`${name}: a seed says who it is`, async () => {
    const b = await startNode(make, { seedAnswer: someSeedAnswer });
    const a = await startNode(make);
    assertEquals(await seed(a, b.address), someSeedAnswer());
    assertEquals(await seed(a, `http://${b.address}`), someSeedAnswer());
    await b.transport.stop();
    const failure = await seed(a, b.address) as DialFailure;
    assertEquals(failure.reason, 'refused');
    await a.transport.stop();
  });
}

function stopTests(name: string, make: MakeTransport): void {
  test(`${name}: stop closes every link cleanly and frees the address`, async () => {
    const { a, b, near } = await pairOf(make);
    await Promise.all([a.transport.stop(), a.transport.stop()]);
    await until('both closes', () => a.closed.length === 1 && b.closed.length === 1);
    assertEquals([a.closed[0]?.link, a.closed[0]?.close.clean, b.closed[0]?.close.clean], [near, true, true]);
    assertEquals(await probe(b, a.address), 'refused');
    assertEquals([a.lost, b.lost], [[], []]);
    const again = await startNode(make, { port: Number(a.address.split(':')[1]) });
    assertEquals(again.address, a.address);
    await linked(b, again.address);
    await Promise.all([again.transport.stop(), b.transport.stop()]);
  });

  test(`${name}: an address is bound once`, async () => {
    const a = await startNode(make);
    const port = Number(a.address.split(':')[1]);
    await assertRejects(() => startNode(make, { port }), ListenError, `127.0.0.1 port ${port}: port in use`);
    await a.transport.stop();
  });
}
