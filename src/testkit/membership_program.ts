/** The simulator's program for membership alone: real nodes, peers and codec on simulated links, no singletons. */
import { KeepMajority, KeepOldest } from '../cluster/downing/mod.ts';
import type { DowningStrategy } from '../cluster/downing/contract.ts';
import type { ClusterNode } from '../cluster/node.ts';
import { createNode } from '../cluster/start_node.ts';
import { resolveTiming } from '../cluster/timing.ts';
import { createPeers } from '../transport/peers.ts';
import { Codec } from '../wire/codec.ts';
import { disagreement, MembershipRules } from './membership_rules.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import type { SimProcess } from './sim_process.ts';
import { SimTransport } from './sim_transport.ts';

export const membershipProgram: Program = {
  name: 'membership',
  drain: 'tracked',
  create: (context) => new MembershipRun(context),
};

class MembershipRun implements ProgramRun {
  #nodes = new Map<SimProcess, ClusterNode>();
  #rules = new MembershipRules();
  #strategy: DowningStrategy;
  #seeds: readonly string[];
  #promotions = 0;
  /** Where a node that lost a heal was told to come back: its next process asks there as well. */
  #via = new Map<string, readonly string[]>();

  constructor(context: RunContext) {
    const { random, addresses } = context;
    this.#strategy = random.chance(0.8) ? new KeepMajority() : new KeepOldest();
    const all = random.chance(0.7);
    this.#seeds = all
      ? addresses
      : random.shuffled(addresses).slice(0, random.integer(Math.min(2, addresses.length), addresses.length));
  }

  async boot(process: SimProcess): Promise<void> {
    const uid = `${
      Math.floor(process.random.next() * 46_656).toString(36).padStart(3, '0')
    }-${process.name}.${process.incarnation}`;
    const { environment } = process;
    const made: { node?: ClusterNode } = {};
    const transport = new SimTransport(process, { uid, clusterName: 'sim', seedAnswer: () => made.node?.seedAnswer() });
    const node = await createNode(
      {
        environment,
        clusterName: 'sim',
        uid,
        roles: [],
        runtime: 'memory',
        appVersion: '1',
        seeds: [...this.#seeds, ...(this.#via.get(process.host.address) ?? [])],
        protocol: 1,
        fingerprint: 'sim',
        timing: resolveTiming(),
        strategy: this.#strategy,
        transport,
      },
      (events) => createPeers({ environment, transport, codec: new Codec(), uid, events }),
    );
    made.node = node;
    this.#watch(process, node);
    node.start();
  }

  async leave(process: SimProcess): Promise<void> {
    const node = this.#nodes.get(process);
    if (node === undefined) return;
    await node.leave();
    await node.peers.stop();
  }

  /** A view changes in steps of its own process only. */
  check(process: SimProcess | undefined): void {
    const node = process && this.#nodes.get(process);
    if (process && node) this.#rules.observe(node, process.name, node.view());
  }

  unsettled(): string | undefined {
    const nodes = [...this.#nodes].map(([process, node]) => ({ name: process.name, uid: node.uid, view: node.view() }));
    return disagreement(nodes);
  }

  statistics(): Record<string, number> {
    return { promotions: this.#promotions };
  }

  /** A node that leads says that it hosts, so that gates are at work; one that has ended ends its process. */
  #watch(process: SimProcess, node: ClusterNode): void {
    this.#nodes.set(process, node);
    process.onExit(() => {
      this.#nodes.delete(process);
      this.#rules.forget(node);
    });
    let leads = false;
    node.onChange((view, changes) => {
      for (const change of changes) this.#note(process, change.kind, change);
      const now = view.leader?.uid === node.uid;
      if (now === leads || node.ended() !== undefined) return;
      leads = now;
      const claim = { epoch: view.self.upNumber, plannedSince: view.self.upNumber, since: 0 };
      node.publish({ hosting: new Map(leads ? [['led', claim]] : []) });
    });
    node.onEnd((end) => {
      process.world.record('ended', process.name, end.why);
      if (!end.rejoin) return;
      this.#via.set(process.host.address, end.via);
      process.track(node.peers.stop()).then(() => process.exit());
    });
  }

  #note(process: SimProcess, kind: string, change: unknown): void {
    const member = (change as { member?: { address: string; status: string; upNumber: number } }).member;
    const extra = change as { before?: { status: string }; reachable?: boolean };
    if (kind === 'self-up') this.#promotions++;
    const status = extra.reachable === undefined ? `${extra.before?.status ?? 'unknown'} → ${member?.status}` : '';
    const reach = extra.reachable === undefined ? status : extra.reachable ? 'reachable' : 'unreachable';
    process.world.record(
      kind,
      process.name,
      member === undefined ? '' : `${member.address} (${member.upNumber}) ${reach}`,
    );
  }
}
