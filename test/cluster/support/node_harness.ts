/** Real nodes over the in-memory network, all on one virtual clock. */
import type { ClusterNode } from '../../../src/cluster/node.ts';
import { createNode } from '../../../src/cluster/start_node.ts';
import type { NodeSettings } from '../../../src/cluster/node_context.ts';
import { KeepMajority } from '../../../src/cluster/downing/mod.ts';
import { resolveTiming } from '../../../src/cluster/timing.ts';
import { ManualEnvironment } from '../../../src/testkit/manual_environment.ts';
import { MemoryNetwork } from '../../../src/transport/memory.ts';
import { createPeers } from '../../../src/transport/peers.ts';
import { Codec } from '../../../src/wire/codec.ts';

export interface TestNode {
  readonly node: ClusterNode;
  readonly address: string;
  /** Ends the process without a word. */
  crash(): void;
  /** Stops peers and listener. */
  stop(): void;
}

export class Harness {
  readonly environment = new ManualEnvironment();
  readonly network: MemoryNetwork;
  readonly nodes: TestNode[] = [];
  /** What has been on its way in the network so far: frames, dials, closes. */
  deliveries = 0;
  #uids = 0;

  constructor(delayMs = 1) {
    const counted = (): number => {
      this.deliveries += 1;
      return delayMs;
    };
    this.network = new MemoryNetwork({ environment: this.environment, delayMs: counted });
  }

  async add(address: string, seeds: readonly string[], extra: Partial<NodeSettings> = {}): Promise<TestNode> {
    const uid = extra.uid ?? `u${++this.#uids}-${address}`;
    const clusterName = extra.clusterName ?? 'test';
    const made: { node?: ClusterNode } = {};
    const roles = extra.roles ?? [];
    const transport = this.network.transport({
      address,
      uid,
      clusterName,
      roles,
      seedAnswer: () => {
        if (made.node === undefined) throw new Error('not started');
        return made.node.seedAnswer();
      },
    });
    const settings: NodeSettings = {
      environment: this.environment,
      clusterName,
      uid,
      roles,
      runtime: 'memory',
      appVersion: '1',
      seeds,
      protocol: 1,
      fingerprint: 'f',
      timing: resolveTiming(),
      strategy: new KeepMajority(),
      transport,
      ...extra,
    };
    const making = createNode(
      settings,
      (events) => createPeers({ environment: this.environment, transport, codec: new Codec(), uid, events }),
    );
    await this.environment.settle();
    const node = await making;
    made.node = node;
    node.start();
    const handle: TestNode = {
      node,
      address,
      crash: () => {
        this.network.crash(address);
        node.dispatch({ kind: 'end', why: 'crashed', selfDown: false, rejoin: false });
      },
      stop: () => void node.peers.stop(),
    };
    this.nodes.push(handle);
    return handle;
  }

  async cluster(count: number, host: string, extra: Partial<NodeSettings> = {}): Promise<TestNode[]> {
    const addresses = Array.from({ length: count }, (_, i) => `${host}${i + 1}:4000`);
    const nodes: TestNode[] = [];
    for (const address of addresses) nodes.push(await this.add(address, addresses.slice(0, 1), extra));
    await this.until(() => nodes.every((one) => statuses(one).length === count && allUp(one)), 10_000);
    return nodes;
  }

  /** Advances until `condition` holds; fails after `withinMs`. Returns the time it took. */
  async until(condition: () => boolean, withinMs: number): Promise<number> {
    const start = this.environment.clock.now();
    while (!condition()) {
      if (this.environment.clock.now() - start > withinMs) {
        throw new Error(`not within ${withinMs} ms:\n${this.nodes.map(describeNode).join('\n')}`);
      }
      await this.environment.elapse(1);
    }
    return this.environment.clock.now() - start;
  }

  cutAll(left: readonly TestNode[], right: readonly TestNode[]): void {
    for (const a of left) for (const b of right) this.network.cut(a.address, b.address);
  }

  healAll(left: readonly TestNode[], right: readonly TestNode[]): void {
    for (const a of left) for (const b of right) this.network.heal(a.address, b.address);
  }
}

export function statuses(one: TestNode): string[] {
  return one.node.view().members.map((member) => `${member.address} ${member.status}`);
}

export function allUp(one: TestNode): boolean {
  return one.node.ended() === undefined && one.node.view().members.every((member) => member.status === 'up');
}

export function describeNode(one: TestNode): string {
  const view = one.node.view();
  const members = view.members.map((m) => `${m.address}#${m.upNumber}=${m.status}${m.reachable ? '' : '!'}`).join(' ');
  const seen = [...one.node.membership().seen].join(',');
  return `${one.address} ended=${one.node.ended()?.why} cluster=${view.clusterId} converged=${view.converged} ${members} seen=${seen} (${one.node.readiness()})`;
}
