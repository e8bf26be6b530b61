/** The simulator's program for the whole thing: real nodes with singletons, a load on them, and the witnesses. */
import type { MembershipView } from '../cluster/member.ts';
import { eligibleHosts } from '../singleton/host.ts';
import type { Address } from '../transport/contract.ts';
import { DiskLoad } from './disk_load.ts';
import { type Instance, InstanceRegistry, type LeaseRules } from './instance_registry.ts';
import { LeaseBackend } from './lease_backend.ts';
import { leaseAction } from './lease_load.ts';
import { Ledger, type LedgerPolicy, singletonOf } from './ledger.ts';
import type { LieKind } from './lies.ts';
import { disagreement, MembershipRules } from './membership_rules.ts';
import { NumberingRule } from './numbering_rule.ts';
import { Prng } from './prng.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import { SidesRule } from './sides_rule.ts';
import type { SimProcess } from './sim_process.ts';
import { SimulationError } from './sim_world.ts';
import { SingletonNode } from './singleton_node.ts';
import { drawSettings, type RunSettings } from './singleton_settings.ts';

/**
 * Checks S1 within each cluster id and counts forks. A fork: a cluster has shrunk, by its downing strategy, to less than a
 * majority of the seed list, and the nodes that fell out of it found a new cluster by pledges while they cannot reach the
 * rest. Without durable state or a lease nothing tells this from a restart of the whole cluster.
 */
export const singletonProgram: Program = {
  name: 'singletons',
  drain: 'tracked',
  create: (context) => new SingletonRun(context, 'count'),
};

/** The same, and a fork is a failure. */
export const strictSingletonProgram: Program = {
  name: 'singletons-strict',
  drain: 'tracked',
  create: (context) => new SingletonRun(context, 'fail'),
};

/** The same with few nodes that gossip as many do: to some of the others, and only what has changed. */
export const largeSingletonProgram: Program = {
  name: 'singletons-large',
  drain: 'tracked',
  create: (context) => new SingletonRun(context, 'count', { gossipToAllUpTo: 1 }),
};

const auditEveryMs = 1_000;

interface StreamEnds {
  readonly kind: RunSettings['kinds'][number] | undefined;
  readonly from: string;
}

export class SingletonRun implements ProgramRun {
  readonly settings: RunSettings;
  readonly registry: InstanceRegistry;
  readonly ledger: Ledger;
  readonly random: Prng;
  readonly leaseBackend: LeaseBackend;
  /** Of the persistent singletons, where there are any. */
  readonly disks: DiskLoad | undefined;
  /** Set once the load has stopped. */
  quiet = false;
  #context: RunContext;
  #nodes = new Map<SimProcess, SingletonNode>();
  #rules: MembershipRules;
  #numbering = new NumberingRule();
  #sides: SidesRule | undefined;
  /** Senders that end of their own accord. */
  readonly leaving = new Set<string>();
  /** Where a node that lost a heal was told to come back: its next process asks there as well. */
  #via = new Map<Address, readonly Address[]>();
  #nextAudit = 0;
  #streams = new Map<string, StreamEnds>();

  constructor(
    context: RunContext,
    forks: 'count' | 'fail',
    more: Pick<RunSettings, 'callers' | 'gossipToAllUpTo'> = {},
  ) {
    this.#context = context;
    this.random = context.random;
    this.settings = { ...drawSettings(context), ...more };
    this.leaseBackend = new LeaseBackend(context.world);
    const { world, profile } = context;
    this.disks = profile.disks === true ? new DiskLoad(world, new Prng(`${world.seed}/disks`)) : undefined;
    const leased = this.settings.leases !== undefined;
    // What a lease and a journal do between their messages is promises that nobody here sees.
    if (leased || this.settings.arbiter !== undefined || this.disks !== undefined) context.world.drain = 'always';
    const { oneCluster = false } = context.profile;
    const excuse = forks === 'count' && !this.settings.plannedOnly && !leased && !oneCluster;
    this.#rules = new MembershipRules(oneCluster);
    const forked = (older: Instance, younger: Instance) =>
      excuse && (this.#sides !== undefined || this.#forked(older, younger));
    const stays = (name: string) => context.profile.joinsOnly === true && !mayMoveItself(this.settings, name);
    this.registry = new InstanceRegistry(context.world, this.settings.plannedOnly, forked, this.#leaseRules(), stays);
    if (context.profile.sidesLive === true) {
      this.#sides = new SidesRule(context.world, this.registry, this.settings.kinds.map(({ name }) => name));
    }
    this.ledger = new Ledger(context.world, (stream) => this.#policy(stream));
  }

  async boot(process: SimProcess): Promise<void> {
    const via = this.#via.get(process.host.address) ?? [];
    this.#via.delete(process.host.address);
    const node = await SingletonNode.start(this, process, via);
    this.#nodes.set(process, node);
    process.onExit(() => {
      this.#nodes.delete(process);
      this.#rules.forget(node.membership);
    });
    node.onEnd((end) => {
      process.world.record('ended', process.name, end.why);
      if (end.via.length > 0) this.#via.set(process.host.address, end.via);
    });
    node.join();
  }

  mayLeave(process: SimProcess): boolean {
    const node = this.#nodes.get(process);
    if (node === undefined) return false;
    if (!this.settings.plannedOnly) return true;
    const stays = [...this.#nodes].filter(([other, { membership }]) =>
      other !== process && !this.leaving.has(sender(other)) && membership.view().self.status === 'up'
    );
    const view = node.membership.view();
    return view.self.status === 'up' && stays.length > 0 && this.#leavesHosts(view, stays.map(([, other]) => other));
  }

  /** A host that leaves nobody behind who may host is no planned move. */
  #leavesHosts(view: MembershipView, stays: readonly SingletonNode[]): boolean {
    const uids = new Set(stays.map(({ membership }) => membership.uid));
    return this.settings.kinds.every(({ name }) => {
      const hosts = eligibleHosts(view, name);
      return hosts.length === 0 || hosts.some(({ uid }) => uids.has(uid));
    });
  }

  async leave(process: SimProcess): Promise<void> {
    const node = this.#nodes.get(process);
    if (node === undefined) return;
    this.leaving.add(sender(process));
    node.stopLoad();
    await node.leave();
  }

  call(process: SimProcess, action: string, argument: string): void {
    if (leaseAction(this.leaseBackend, action, argument) || this.disks?.action(action, argument) === true) return;
    if (action === 'down') {
      return void this.#nodes.get(process)?.membership.down(this.#context.world.host(argument).address);
    }
    if (action === 'lie') return this.#nodes.get(process)?.liar.tell(argument as LieKind);
    const [index, target] = argument.split('@');
    const kind = this.settings.kinds[Number(index) % this.settings.kinds.length];
    if (kind === undefined) return;
    this.#nodes.get(process)?.act(action, kind, target && this.#context.world.host(target).address);
  }

  check(process: SimProcess | undefined): void {
    if (process !== undefined) this.#checkMembership(process);
    this.#sides?.check();
    const { world } = this.#context;
    if (world.now < this.#nextAudit) return;
    this.#nextAudit = world.now + auditEveryMs;
    this.#audit();
  }

  /** Voters that have all restarted go on from wall clocks; if those were set, from nothing. */
  #leaseRules(): LeaseRules | undefined {
    const { leases } = this.settings;
    const { hosts } = this.#context.world;
    if (leases === undefined) return undefined;
    return { epochsGrow: () => leases.kind === 'store' || hosts.every(({ wallOffsetMs }) => wallOffsetMs === 0) };
  }

  /** A view changes in steps of its own process only. Where every side of a split lives on, two leaders number one cluster. */
  #checkMembership(process: SimProcess): void {
    const membership = this.#nodes.get(process)?.membership;
    if (membership === undefined || this.settings.sidesLive) return;
    this.#rules.observe(membership, process.name, membership.view());
    this.#numbering.observe(
      membership,
      process.name,
      membership.membership(),
      () => [...this.#nodes.values()].map((node) => node.membership.membership()),
    );
  }

  quiesce(): void {
    this.quiet = true;
    this.leaseBackend.endFaults();
    this.disks?.endFaults();
    for (const node of this.#nodes.values()) node.quiesce();
  }

  unsettled(): string | undefined {
    const nodes = [...this.#nodes].map(([process, { membership }]) => ({
      name: process.name,
      uid: membership.uid,
      view: membership.view(),
    }));
    return disagreement(nodes) ?? this.#unsettledSingletons();
  }

  async finish(): Promise<void> {
    this.#audit();
    for (const [process, node] of this.#nodes) {
      for (const kind of this.settings.kinds) {
        const { buffered } = node.ledgerOf(kind.name);
        if (buffered > 0) {
          throw new SimulationError('S2', `${process.name} still buffers ${buffered} messages for ${kind.name}`);
        }
      }
    }
    await this.disks?.checkDisk();
  }

  statistics(): Record<string, number> {
    const { leases: leased, arbiter } = this.settings;
    const leases = leased === undefined && arbiter === undefined ? {} : this.leaseBackend.statistics;
    return { ...this.registry.statistics, ...this.ledger.statistics, ...leases, ...this.disks?.statistics() };
  }

  #unsettledSingletons(): string | undefined {
    for (const { name, persistent } of this.settings.kinds) {
      const living = this.registry.living(name);
      if (living.length !== 1) {
        return `${living.length} instances of ${name}${living.map(({ process }) => ` ${process.name}`).join('')}`;
      }
      if (persistent === true && this.disks?.book.hasRecovered(living[0] as Instance) === false) {
        return `${name} has not recovered`;
      }
      for (const [process, node] of this.#nodes) {
        const host = node.hostOf(name);
        const actual = living[0]?.process.host.address;
        if (host !== actual) return `${process.name} believes ${host} to host ${name}, ${actual} does`;
        const { buffered } = node.ledgerOf(name);
        if (buffered > 0) return `${process.name} buffers ${buffered} messages for ${name}`;
      }
    }
    return undefined;
  }

  #audit(): void {
    for (const [process, node] of this.#nodes) {
      for (const { name } of this.settings.kinds) this.ledger.audit(`${sender(process)}>${name}`, node.ledgerOf(name));
    }
  }

  #forked(older: Instance, younger: Instance): boolean {
    return this.#clusterOf(older) !== this.#clusterOf(younger);
  }

  #clusterOf({ clusterId, process }: Instance): string | undefined {
    return clusterId ?? this.#nodes.get(process)?.membership.view().clusterId;
  }

  /** Asked for with each message. */
  #ends(stream: string): StreamEnds {
    let ends = this.#streams.get(stream);
    if (ends === undefined) {
      const kind = this.settings.kinds.find((candidate) => candidate.name === singletonOf(stream));
      ends = { kind, from: stream.slice(0, stream.indexOf('>')) };
      this.#streams.set(stream, ends);
    }
    return ends;
  }

  #policy(stream: string): LedgerPolicy {
    const { kind, from } = this.#ends(stream);
    return {
      atLeastOnce: kind?.atLeastOnce === true && !this.settings.plannedOnly,
      exact: this.settings.plannedOnly && !this.leaving.has(from),
      unordered: kind?.stashes !== undefined,
      // A caller that has gone over to the other cluster of a fork has left messages with the first.
      sidesLive: this.settings.sidesLive || this.registry.statistics.forks > 0,
    };
  }
}

/** It fails, and moves away from a node on which it fails too often. */
function mayMoveItself({ kinds }: RunSettings, name: string): boolean {
  const kind = kinds.find((candidate) => candidate.name === name);
  return kind?.failingStarts !== undefined || kind?.stopsItself !== undefined;
}

/** The sender half of a stream's name. */
export function sender(process: SimProcess): string {
  return `${process.name}/${process.incarnation}`;
}
