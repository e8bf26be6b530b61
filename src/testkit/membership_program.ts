/** The simulator's program for membership alone: real nodes, peers and codec on simulated links, no singletons. */
import { KeepMajority, KeepOldest } from '../cluster/downing/mod.ts';
import type { DowningStrategy } from '../cluster/downing/contract.ts';
import type { ClusterNode } from '../cluster/node.ts';
import { createNode } from '../cluster/start_node.ts';
import { resolveTiming } from '../cluster/timing.ts';
import { createPeers } from '../transport/peers.ts';
import { protocolVersion } from '../transport/protocol.ts';
import { Codec } from '../wire/codec.ts';
import { everySideLives } from './lease_load.ts';
import { Liar, type LieKind } from './lies.ts';
import { disagreement, MembershipRules } from './membership_rules.ts';
import { NumberingRule } from './numbering_rule.ts';
import { Prng } from './prng.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import type { SimProcess } from './sim_process.ts';
import { SimulationError, type World } from './sim_world.ts';
import { SimTransport } from './sim_transport.ts';

export const membershipProgram: Program = {
  name: 'membership',
  drain: 'tracked',
  create: (context) => new MembershipRun(context),
};

/** Less than the records of three members take. */
const smallFrameBytes = 200;

class MembershipRun implements ProgramRun {
  #nodes = new Map<SimProcess, ClusterNode>();
  #rules: MembershipRules;
  #numbering = new NumberingRule();
  #strategy: DowningStrategy;
  #seeds: readonly string[];
  #promotions = 0;
  #gossipToAllUpTo: number;
  /** Some runs cut whole states into parts, as a large cluster does. */
  #frames: { readonly frameBytes?: number };
  #plannedOnly: boolean;
  #liars = new WeakMap<SimProcess, Liar>();
  #sidesLive: boolean;
  #world: World;
  /** Where a node that lost a heal was told to come back: its next process asks there as well. */
  #via = new Map<string, readonly string[]>();

  constructor(context: RunContext) {
    const { random, addresses, profile, world } = context;
    this.#world = world;
    this.#plannedOnly = profile.plannedOnly;
    this.#rules = new MembershipRules(profile.oneCluster);
    this.#sidesLive = profile.sidesLive === true;
    this.#strategy = this.#sidesLive ? everySideLives : random.chance(0.8) ? new KeepMajority() : new KeepOldest();
    // Small enough that small clusters do what large ones do.
    this.#gossipToAllUpTo = random.chance(0.5) ? 1 : 12;
    this.#frames = new Prng(`${world.seed}/frames`).chance(0.5) ? { frameBytes: smallFrameBytes } : {};
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
        protocol: protocolVersion,
        fingerprint: 'sim',
        timing: resolveTiming(),
        strategy: this.#strategy,
        gossipToAllUpTo: this.#gossipToAllUpTo,
        transport,
      },
      (events) => createPeers({ environment, transport, codec: new Codec(), uid, events, ...this.#frames }),
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

  call(process: SimProcess, action: string, argument: string): void {
    if (action === 'lie') this.#liars.get(process)?.tell(argument as LieKind);
    if (action === 'down') this.#nodes.get(process)?.down(this.#world.host(argument).address);
  }

  /** A view changes in steps of its own process only. */
  check(process: SimProcess | undefined): void {
    const node = process && this.#nodes.get(process);
    if (process === undefined || node === undefined || this.#sidesLive) return;
    this.#rules.observe(node, process.name, node.view());
    this.#numbering.observe(
      node,
      process.name,
      node.membership(),
      () => [...this.#nodes.values()].map((other) => other.membership()),
    );
  }

  unsettled(): string | undefined {
    const nodes = [...this.#nodes].map(([process, node]) => ({ name: process.name, uid: node.uid, view: node.view() }));
    return disagreement(nodes);
  }

  statistics(): Record<string, number> {
    let refused = 0;
    for (const process of this.#nodes.keys()) refused += this.#liars.get(process)?.rejected ?? 0;
    for (const node of this.#nodes.values()) {
      for (const what of ['refused gossip', 'refused claim']) refused += node.counters().get(what) ?? 0;
    }
    return { promotions: this.#promotions, refused };
  }

  /** A node that leads says that it hosts, so that gates are at work; one that has ended ends its process. */
  #watch(process: SimProcess, node: ClusterNode): void {
    this.#nodes.set(process, node);
    this.#liars.set(process, new Liar(node, process, new Prng(`${this.#world.seed}/lies/${node.uid}`)));
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
      if (this.#plannedOnly) this.#world.fail(new SimulationError('S4', `${process.name} was put out: ${end.why}`));
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
