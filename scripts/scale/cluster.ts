/** A simulated cluster of any size, formed at once, whose traffic is counted. */
import { KeepMajority } from '../../src/cluster/downing/mod.ts';
import type { MemberRecord } from '../../src/cluster/gossip_state.ts';
import type { ClusterNode } from '../../src/cluster/node.ts';
import { initialRecord, type NodeSettings } from '../../src/cluster/node_context.ts';
import { createNode } from '../../src/cluster/start_node.ts';
import { resolveTiming } from '../../src/cluster/timing.ts';
import type { SimProcess } from '../../src/testkit/sim_process.ts';
import { SimTransport } from '../../src/testkit/sim_transport.ts';
import { World } from '../../src/testkit/sim_world.ts';
import { createPeers } from '../../src/transport/peers.ts';
import { Codec } from '../../src/wire/codec.ts';

export interface Traffic {
  readonly frames: number;
  readonly bytes: number;
}

export class ScaleCluster {
  readonly world: World;
  readonly nodes: ClusterNode[] = [];
  #processes: SimProcess[] = [];
  #frames = 0;
  #bytes = 0;

  private constructor(seed: number) {
    this.world = new World({ seed, drain: 'tracked', traceKept: 1, logLevel: 'off' });
    this.world.network.onFrame = (bytes) => {
      this.#frames += 1;
      this.#bytes += bytes.length;
    };
  }

  /** `size` members that are up. */
  static async form(size: number, seed = 1): Promise<ScaleCluster> {
    const cluster = new ScaleCluster(seed);
    await cluster.#start(size);
    const founders = cluster.nodes.map((node): MemberRecord => initialRecord(node.settings, node.address));
    for (const node of cluster.nodes) {
      node.dispatch({ kind: 'form', clusterId: 'scale', formedAt: 1, founders });
    }
    const up = () => cluster.nodes.every((node) => node.view().self.status === 'up' && node.view().converged);
    if (!await cluster.until(up, 120_000)) throw new Error(`${size} members have not formed a cluster`);
    return cluster;
  }

  async #start(size: number): Promise<void> {
    for (let index = 0; index < size; index++) {
      const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}:2550`;
      const host = this.world.addHost(`n${index + 1}`, address, (process) => this.#boot(process));
      this.world.start(host);
    }
    await this.until(() => this.nodes.length === size, 10_000);
  }

  async #boot(process: SimProcess): Promise<void> {
    const { environment } = process;
    const uid = `${process.random.next().toString(36).slice(2, 10)}-${process.name}`;
    const transport = new SimTransport(process, { uid, clusterName: 'scale' });
    const settings: NodeSettings = {
      environment,
      clusterName: 'scale',
      uid,
      roles: [],
      runtime: 'memory',
      appVersion: '1',
      seeds: [],
      protocol: 1,
      fingerprint: 'scale',
      timing: resolveTiming(),
      strategy: new KeepMajority(),
      transport,
    };
    const node = await createNode(
      settings,
      (events) => createPeers({ environment, transport, codec: new Codec(), uid, events }),
    );
    this.nodes.push(node);
    this.#processes.push(process);
  }

  until(condition: () => boolean, withinMs: number): Promise<boolean> {
    return this.#poll(condition, this.world.now + withinMs);
  }

  /** Looks every 10 virtual milliseconds: a thousand views are too many to look at after each step. */
  async #poll(condition: () => boolean, end: number): Promise<boolean> {
    while (this.world.now < end) {
      if (condition()) return true;
      await this.world.advance(10);
    }
    return condition();
  }

  /** What is sent while `run` runs. */
  async traffic(run: () => Promise<void>): Promise<Traffic & { readonly ms: number }> {
    const [frames, bytes, start] = [this.#frames, this.#bytes, this.world.now];
    await run();
    return { frames: this.#frames - frames, bytes: this.#bytes - bytes, ms: this.world.now - start };
  }
}
