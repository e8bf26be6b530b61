/** A cluster whose links go through something that cuts them when nothing has passed for a while. */
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { isLink, type Link, type Transport, type TransportEvents } from '../../src/transport/contract.ts';
import { MemoryCluster } from './memory_cluster.ts';

const cutCode = 4_999;

/** Between all nodes: ends a link, as a loss for both sides, over which no frame has come for `idleMs`. */
class IdleProxy {
  cuts = 0;
  readonly #memory: MemoryCluster;
  readonly #idleMs: number;
  readonly #links = new Set<Link>();
  readonly #heardAt = new Map<string, number>();

  constructor(memory: MemoryCluster, idleMs: number) {
    this.#memory = memory;
    this.#idleMs = idleMs;
  }

  between(own: string, inner: Transport): Transport {
    const opened = (link: Link) => {
      this.#links.add(link);
      this.#heard(own, link);
    };
    const start = (events: TransportEvents) =>
      inner.start({
        ...events,
        accepted: (link) => (opened(link), events.accepted(link)),
        frame: (link, bytes) => (this.#heard(own, link), events.frame(link, bytes)),
        closed: (link, close) => {
          this.#links.delete(link);
          const cut = close.code === cutCode;
          events.closed(link, cut ? { code: 1006, reason: 'connection lost', clean: false } : close);
        },
      });
    return {
      start,
      dial: (address, done) => inner.dial(address, (outcome) => (isLink(outcome) && opened(outcome), done(outcome))),
      probe: (...args) => inner.probe(...args),
      seed: (...args) => inner.seed(...args),
      stop: () => inner.stop(),
    };
  }

  look(): void {
    const now = this.#memory.environment.clock.now();
    for (const link of [...this.#links]) {
      if (!link.dialled || now - this.#heardAt.get(this.#key(link))! < this.#idleMs) continue;
      this.cuts++;
      link.close(cutCode, 'idle');
    }
  }

  readonly #keys = new WeakMap<Link, string>();
  #key(link: Link): string {
    return this.#keys.get(link)!;
  }

  #heard(own: string, link: Link): void {
    const key = [own, link.peer.address].sort().join(' ');
    this.#keys.set(link, key);
    this.#heardAt.set(key, this.#memory.environment.clock.now());
  }
}

async function quietMinutes(nodes: number, idleMs: number, minutes: number) {
  const memory = new MemoryCluster();
  const proxy = new IdleProxy(memory, idleMs);
  const unreachable: string[] = [];
  for (let n = 1; n <= nodes; n++) {
    const address = `127.0.0.1:${500 + n}`;
    const transport = (identity: { uid: string; clusterName: string }) =>
      proxy.between(address, memory.network.transport({ address, ...identity }));
    const { cluster } = await memory.join({ transport }, address);
    cluster.subscribe((event) => event.kind === 'MemberUnreachable' && unreachable.push(address));
  }
  for (let passed = 0; passed < minutes * 60_000; passed += 250) {
    await memory.environment.elapse(250);
    proxy.look();
  }
  return { members: memory.nodes.map(({ cluster }) => cluster.getMembers().length), unreachable, cuts: proxy.cuts };
}

test('FB-094: links that are cut after 20 s of silence: without any user traffic no member turns unreachable', async () => {
  for (const [nodes, minutes] of [[2, 5], [11, 1]] as const) {
    const { members, unreachable } = await quietMinutes(nodes, 20_000, minutes);
    assertEquals([members, unreachable], [members.map(() => nodes), []]);
  }
});

test('what cuts links that are in use does show: the cuts are real', async () => {
  const { cuts } = await quietMinutes(2, 1, 0.1);
  assert(cuts > 10, String(cuts));
});
