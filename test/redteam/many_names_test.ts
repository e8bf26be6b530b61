/** Strangers and members that come under ever new names: what a node keeps of them is bounded. */
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { isLink, type Link } from '../../src/transport/contract.ts';
import { encodeHello, encodeProof } from '../../src/transport/hello.ts';
import { LinkedPeers } from '../../src/transport/peers.ts';
import type { ListenOptions, Runtime, Socket } from '../../src/transport/runtime.ts';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { Codec } from '../../src/wire/codec.ts';
import { codes } from '../../src/wire/codes.ts';
import { runtime } from '#runtime';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { TappedTransport } from './rogue.ts';
import { FakeNet } from '../transport/fake_net.ts';

/** The most that any table holds which can be reached from `root` by fields. */
function largestTable(root: object): number {
  const seen = new Set<unknown>();
  let largest = 0;
  const look = (value: unknown) => {
    if (typeof value !== 'object' || value === null || seen.has(value) || ArrayBuffer.isView(value)) return;
    seen.add(value);
    if (value instanceof FakeNet || value instanceof ManualEnvironment) return;
    if (value instanceof Map || value instanceof Set) largest = Math.max(largest, value.size);
    if (Array.isArray(value)) largest = Math.max(largest, value.length);
    const inner = value instanceof Map ? [...value.values()] : value instanceof Set ? [...value] : Object.values(value);
    inner.forEach(look);
  };
  look(root);
  return largest;
}

test('FB-102: 50 000 connections, each with another claimed address: the tables of the links stay under their caps', async () => {
  const env = new ManualEnvironment();
  const net = new FakeNet(env);
  const events = { connected() {}, disconnected() {}, dialFailed() {}, message() {}, listenerLost() {} };
  const peers = new LinkedPeers({
    environment: env,
    transport: net.transport('127.0.0.1:1', 'a'),
    codec: new Codec(),
    uid: 'a',
    events,
  });
  await peers.start();
  const links: Link[] = [];
  for (let n = 0; n < 50_000; n++) {
    const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}:1`;
    const stranger = net.transport(address, `u${n}`);
    stranger.dial('127.0.0.1:1', (outcome) => isLink(outcome) && links.push(outcome));
    if (n % 500 !== 499) continue;
    await env.elapse(10);
    assertEquals(links.length, 500);
    for (const link of links.splice(0)) link.close(1000, 'gone');
    await env.elapse(10);
  }
  assert(largestTable(peers) >= limits.members);
  for (let n = 0; n < 10; n++) peers.connect(`192.168.0.${n}:1`);
  assert(largestTable(peers) <= limits.members + limits.inboundConnections, String(largestTable(peers)));
  await peers.stop();
});

/** Takes what is written, and says nothing. */
function mute(): Socket & { closes: number } {
  const socket = {
    closes: 0,
    onMessage: (_bytes: Uint8Array) => {},
    onClose: (_close: { code: number; reason: string; clean: boolean }) => {},
    onDrain: () => {},
    send: () => true,
    bufferedBytes: () => 0,
    close(code: number, reason: string) {
      if (++socket.closes > 1) return;
      queueMicrotask(() => socket.onClose({ code, reason, clean: true }));
    },
  };
  return socket;
}

test('FB-102: 50 000 handshakes under ever new names come to nothing, and to a few lines of the log', async () => {
  const env = new ManualEnvironment();
  let listening: ListenOptions | undefined;
  const fake: Runtime = {
    ...runtime,
    listen: (options) => {
      listening = options;
      return Promise.resolve({ port: 1, close: () => Promise.resolve() });
    },
  };
  const transport = new WebSocketTransport({
    runtime: fake,
    environment: env,
    clusterName: 'c',
    host: '127.0.0.1',
    port: 1,
    uid: 'a',
    secret: 'the secret of this cluster',
    seedAnswer: () => ({}) as never,
  });
  await transport.start({ accepted: () => assert(false), frame() {}, closed() {}, listenerLost() {} });
  const nonce = crypto.getRandomValues(new Uint8Array(32));
  const proof = encodeProof(new Uint8Array(32));
  for (let n = 0; n < 50_000;) {
    const sockets: ReturnType<typeof mute>[] = [];
    for (let room = 500; room > 0; room--, n++) {
      const socket = mute();
      sockets.push(socket);
      listening!.onSocket(socket, '203.0.113.9');
      const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}:1`;
      const hello = {
        side: 'initiator',
        secured: true,
        integrity: false,
        clusterName: 'c',
        runtime: 'node',
        roles: [],
        nonce,
      } as const;
      socket.onMessage(encodeHello({ ...hello, address, uid: `u${n}` }));
      socket.onMessage(proof);
    }
    while (sockets.some(({ closes }) => closes === 0)) await new Promise((resolve) => setTimeout(resolve, 0));
    await env.elapse(1);
  }
  assertEquals([transport.counters.inbound, transport.counters.handshakesFailed], [0, 50_000]);
  assert(env.logsAt('warn').length <= 25, String(env.logsAt('warn').length));
  await transport.stop();
});

test('FB-102: who has the secret and is no member leaves nothing in what is watched, whatever its names are', async () => {
  const memory = new MemoryCluster();
  const node = await memory.join({ http: true });
  const metrics = async () => {
    const answer = await memory.get(Promise.resolve(node.cluster.fetch(new Request('http://x/metrics'))));
    return (await answer.text()).split('\n');
  };
  const before = (await metrics()).length;
  for (let n = 0; n < 2_000; n++) {
    const inner = memory.network.transport({
      address: `10.0.${n >> 8}.${n & 255}:1`,
      uid: `u${n}`,
      clusterName: node.system.name,
      environment: memory.environment,
    });
    const tap = new TappedTransport(inner);
    await tap.start({ accepted() {}, frame() {}, closed() {}, listenerLost() {} });
    tap.dial(node.address, () => {});
    await memory.environment.elapse(5);
    if (tap.linksTo(node.address).length > 0) {
      tap.forge(node.address, 'system', [codes.heartbeat, 1, []], [codes.heartbeatAck, 1], [codes.gossip, {
        from: `v${n}`,
      }]);
    }
    await memory.environment.elapse(5);
    void tap.stop();
  }
  await memory.pass(5_000);
  assertEquals(node.cluster.getMembers().length, 1);
  const after = await metrics();
  assert(after.length - before < 40, `${after.length - before} more lines of metrics`);
  const unheard = after.find((line) => line.includes('what="messages from no member"'));
  assert(Number(unheard?.split(' ').at(-1)) >= 4_000, unheard);
});
