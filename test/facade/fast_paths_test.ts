/** What is done for speed changes nothing else: one workload, with each fast path turned off in turn. */
import { after, describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor, ActorSystem } from '../../src/mod.ts';
import { SingletonKey } from '../../src/facade/mod.ts';
import { type FastPath, fastPaths } from '../../src/fast_paths.ts';
import { MemoryCluster } from './memory_cluster.ts';

const all = Object.keys(fastPaths) as FastPath[];
const payloads: readonly unknown[] = [
  1,
  -0,
  'text',
  null,
  undefined,
  [1, [2, { a: [undefined] }]],
  { map: new Map([[{ key: 1 }, new Set(['x'])]]), when: new Date(5), big: 2n ** 70n },
  new Uint8Array([1, 2, 3]),
  { __proto__: null, plain: true },
  'long '.repeat(40_000),
];

interface Seen {
  /** By sender, in order. */
  readonly messages: Record<string, unknown[]>;
  readonly replies: unknown[];
  readonly ledgers: unknown[];
}

/** Three nodes tell and ask a singleton while its host leaves. */
async function run(): Promise<Seen> {
  const messages: Record<string, unknown[]> = {};
  class Sink extends Actor<{ from: string; n: number; value: unknown }> {
    static readonly singleton: SingletonKey<{ from: string; n: number; value: unknown }> = SingletonKey.of('sink');
    override onReceive({ from, n, value }: { from: string; n: number; value: unknown }): void {
      (messages[from] ??= []).push([n, value]);
      this.context.sender.tell([n, value]);
    }
  }
  const cluster = new MemoryCluster();
  const nodes = [...await cluster.grow(3)];
  const refs = nodes.map((node) => node.cluster.singleton.start(Sink));
  const replies: unknown[] = [];
  for (const [k, ref] of refs.slice(1).entries()) {
    const from = `node ${k + 1}`;
    for (let n = 0; n < 30; n += 1) ref.tell({ from, n, value: payloads[n % payloads.length] });
    replies.push(await cluster.get(ref.ask({ from, n: 30, value: payloads[6] })));
  }
  await cluster.leave(nodes[0]!);
  for (const [k, ref] of refs.slice(1).entries()) {
    const from = `node ${k + 1}`;
    for (let n = 31; n < 60; n += 1) ref.tell({ from, n, value: payloads[n % payloads.length] });
    replies.push(await cluster.get(ref.ask({ from, n: 60, value: 'last' })));
  }
  await cluster.pass(1_000);
  const ledgers = nodes.slice(1).map(({ cluster: { singleton } }) => singleton.find('sink')?.proxy.stream.ledger());
  return { messages, replies, ledgers };
}

describe('fast paths', () => {
  after(() => all.forEach((path) => fastPaths[path] = true));
  let expected: Seen;

  test('all on: every message once and in order', async () => {
    expected = await run();
    for (const from of ['node 1', 'node 2']) {
      assertEquals(
        expected.messages[from]!.map((entry) => (entry as [number])[0]),
        Array.from({ length: 61 }, (_, n) => n),
      );
    }
    assertEquals(expected.replies.length, 4);
  });

  for (const off of [...all.map((path) => [path]), all]) {
    test(`without ${off.join(', ')}: the same`, async () => {
      off.forEach((path) => fastPaths[path] = false);
      try {
        assertEquals(await run(), expected);
      } finally {
        off.forEach((path) => fastPaths[path] = true);
      }
    });
  }

  for (const soon of [true, false]) {
    test(`real turns ${soon ? 'with' : 'without'} soon: order per sender, nothing twice`, async () => {
      fastPaths.soon = soon;
      try {
        const system = ActorSystem.create('turns', { logLevel: 'off' });
        const got: number[][] = [[], [], []];
        class Relay extends Actor<{ via: number; n: number }> {
          override onReceive({ via, n }: { via: number; n: number }): void {
            if (via < 0) got[n % 3]!.push(n);
            else refs[(via + 1) % 3]!.tell({ via: via === 2 ? -1 : via + 1, n });
          }
        }
        const refs = [0, 1, 2].map((k) => system.spawn(Relay, `relay-${k}`));
        for (let n = 0; n < 3_000; n += 1) refs[0]!.tell({ via: 0, n });
        while (got.flat().length < 3_000) await new Promise((resolve) => setTimeout(resolve, 1));
        got.forEach((list) => assert(list.every((n, at) => at === 0 || n > list[at - 1]!)));
        assertEquals(new Set(got.flat()).size, 3_000);
        await system.terminate();
      } finally {
        fastPaths.soon = true;
      }
    });
  }
});
