/**
 * A member that has the secret and has joined like any other, and then sends what no honest node would: the node itself goes
 * on as usual, and the test writes on its links.
 */
import type { Cancel } from '../../src/actor/environment.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { encodeGossip, encodeRecord } from '../../src/cluster/gossip_codec.ts';
import type { GossipState, MemberRecord } from '../../src/cluster/gossip_state.ts';
import { emptyGossip } from '../../src/cluster/gossip_state.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { isLink, type Link, type Transport, type TransportEvents } from '../../src/transport/contract.ts';
import { Codec } from '../../src/wire/codec.ts';
import { codes } from '../../src/wire/codes.ts';
import type { WireRef } from '../../src/wire/extension.ts';
import { type Envelope, FrameWriter, type Lane } from '../../src/wire/frames.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

/** Travels as a ref with these parts, whatever they are. */
export class ForgedRef {
  readonly parts: readonly unknown[];
  constructor(...parts: readonly unknown[]) {
    this.parts = parts;
  }
}

const codec = new Codec({
  refs: {
    toWire: (value) => value instanceof ForgedRef ? value.parts as unknown as WireRef : undefined,
    fromWire: (wire) => new ForgedRef(...wire),
  },
});

export class TappedTransport implements Transport {
  readonly #inner: Transport;
  readonly #links = new Set<Link>();

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  /** The links to the node at `address` that are open. */
  linksTo(address: string): readonly Link[] {
    return [...this.#links].filter((link) => link.peer.address === address);
  }

  /** On the link to the node at `address`, as if the node had sent them. */
  forge(address: string, lane: Lane, ...envelopes: readonly Envelope[]): void {
    const writer = new FrameWriter(lane);
    for (const envelope of envelopes) writer.append(codec.encode(envelope));
    this.raw(address, writer.take());
  }

  raw(address: string, frame: Uint8Array): void {
    const link = this.linksTo(address).at(-1);
    if (link === undefined) throw new Error(`no link to ${address}`);
    link.send(frame);
  }

  start(events: TransportEvents): Promise<string> {
    return this.#inner.start({
      ...events,
      accepted: (link) => {
        this.#links.add(link);
        events.accepted(link);
      },
      frame: (link, bytes) => events.frame(link, bytes),
      closed: (link, close) => {
        this.#links.delete(link);
        events.closed(link, close);
      },
      listenerLost: (why) => events.listenerLost(why),
    });
  }

  dial(address: string, done: Parameters<Transport['dial']>[1]): Cancel {
    return this.#inner.dial(address, (outcome) => {
      if (isLink(outcome)) this.#links.add(outcome);
      done(outcome);
    });
  }

  probe(...args: Parameters<Transport['probe']>): Cancel {
    return this.#inner.probe(...args);
  }

  seed(...args: Parameters<Transport['seed']>): Cancel {
    return this.#inner.seed(...args);
  }

  stop(): Promise<void> {
    return this.#inner.stop();
  }
}

/** Three members on a virtual clock: the host of a counter, its heir, and the rogue, which has started the counter too. */
export class RogueScene {
  readonly memory = new MemoryCluster();
  readonly journal = new Journal();
  host!: MemoryNode;
  heir!: MemoryNode;
  rogue!: MemoryNode;
  tap!: TappedTransport;

  static async open(): Promise<RogueScene> {
    const scene = new RogueScene();
    const { memory } = scene;
    scene.host = await memory.join({ http: true });
    scene.heir = await memory.join({ http: true });
    const settings: ClusterSettings = {
      transport: (identity) => {
        scene.tap = new TappedTransport(memory.network.transport({ address: '127.0.0.1:666', ...identity }));
        return scene.tap;
      },
      rejoin: false,
    };
    scene.rogue = await memory.join(settings);
    const Counter = counterClass(scene.journal);
    for (const { cluster } of memory.nodes) cluster.singleton.start(Counter);
    await memory.until(() => scene.journal.live === 1);
    await memory.pass(200);
    return scene;
  }

  /** To the host. */
  forge(lane: Lane, ...envelopes: readonly Envelope[]): void {
    this.tap.forge(this.host.address, lane, ...envelopes);
  }

  /** What membership of a node knows, changed as the rogue likes, as gossip from it to the host. */
  gossip(change: (state: GossipState) => GossipState): void {
    this.forge('system', [codes.gossip, encodeGossip(change(this.known()), [], [])]);
  }

  known(): GossipState {
    const cluster = this.rogue.cluster;
    const view = cluster.getMembers();
    const base = emptyGossip(this.clusterId, this.formedAt);
    const records = new Map<string, MemberRecord>();
    for (const member of view) {
      const { address, uid, status, upNumber, roles, runtime, appVersion } = member;
      const own = { selfVersion: 1, started: new Map(), hosting: new Map() };
      if (status === 'removed') continue;
      records.set(uid, { address, uid, status, upNumber, terminated: false, roles, runtime, appVersion, ...own });
    }
    return { ...base, lastNumber: 3, records };
  }

  clusterId = '';
  formedAt = 0;

  async learnCluster(): Promise<void> {
    const response = await this.memory.get(
      Promise.resolve(this.host.cluster.fetch(new Request('http://x/cluster/seed'))),
    );
    const seed = await response.json() as { clusterId: string; formedAt: number };
    this.clusterId = seed.clusterId;
    this.formedAt = seed.formedAt;
  }

  async metric(text: string, node = this.host): Promise<number> {
    const response = await this.memory.get(Promise.resolve(node.cluster.fetch(new Request('http://x/metrics'))));
    const lines = (await response.text()).split('\n').filter((line) => !line.startsWith('#') && line.includes(text));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  warnings(): readonly string[] {
    return this.memory.environment.logsAt('warn');
  }
}

export function recordOf(record: MemberRecord): unknown {
  return encodeRecord(record);
}
