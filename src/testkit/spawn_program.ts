/**
 * The simulator's program for singletons that are spawned from any node: all nodes spawn and remove them at the same time, in
 * a cluster in which some nodes lack a kind or a role. The rules of the singletons program, those of `SpawnBooks`, and, once
 * it is quiet: what is registered and has somebody to host it runs exactly once, as registered, and answers every node.
 */
import { carriesRole, eligibleHosts } from '../singleton/host.ts';
import { type Registration, registrations } from '../singleton/spawn_registration.ts';
import type { Address } from '../transport/contract.ts';
import { type Instance, InstanceRegistry } from './instance_registry.ts';
import { Ledger } from './ledger.ts';
import { disagreement, MembershipRules } from './membership_rules.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import type { SimProcess } from './sim_process.ts';
import { sender } from './singleton_program.ts';
import { type BookedNode, SpawnBooks } from './spawn_books.ts';
import { drawSpawns, type SpawnedProps, type SpawnSettings } from './spawn_load.ts';
import { SpawnNode } from './spawn_node.ts';
import { showValue } from './values.ts';

export const spawnProgram: Program = { name: 'spawn', drain: 'tracked', create: (context) => new SpawnRun(context) };

const auditEveryMs = 1_000;

export class SpawnRun implements ProgramRun {
  readonly settings: SpawnSettings;
  readonly registry: InstanceRegistry;
  readonly ledger: Ledger;
  readonly books: SpawnBooks = new SpawnBooks();
  /** What each instance was made of. */
  readonly made = new Map<Instance, SpawnedProps>();
  /** Set once the load has stopped. */
  quiet = false;
  /** How many calls ended how. */
  #outcomes = new Map<string, number>();
  #context: RunContext;
  #nodes = new Map<SimProcess, SpawnNode>();
  #rules = new MembershipRules();
  #leaving = new Set<string>();
  /** Names whose last possible host has left: with nobody to hand over to, what was in flight is of unknown outcome. */
  #homeless = new Set<string>();
  /** Where a node that lost a heal was told to come back. */
  #via = new Map<Address, readonly Address[]>();
  #nextAudit = 0;

  constructor(context: RunContext) {
    this.#context = context;
    const { world } = context;
    this.settings = drawSpawns(context);
    const { plannedOnly, removes } = this.settings;
    const forked = (older: Instance, younger: Instance) =>
      !plannedOnly && this.#clusterOf(older) !== this.#clusterOf(younger);
    this.registry = new InstanceRegistry(world, plannedOnly, forked);
    this.ledger = new Ledger(world, (stream) => ({
      atLeastOnce: false,
      exact: plannedOnly && !removes && !this.#leaving.has(stream.slice(0, stream.indexOf('>'))) &&
        !this.#homeless.has(stream.slice(stream.indexOf('>') + 1)),
    }));
  }

  async boot(process: SimProcess): Promise<void> {
    const via = this.#via.get(process.host.address) ?? [];
    this.#via.delete(process.host.address);
    const node = new SpawnNode(this, process);
    await node.start(via);
    const { uid } = node.membership;
    let left = false;
    this.#nodes.set(process, node);
    process.onExit(() => {
      this.#nodes.delete(process);
      this.#rules.forget(node);
      if (!left) this.books.lost(uid);
    });
    node.onEnd((end) => {
      process.world.record('ended', process.name, end.why);
      left = end.why === 'left';
      if (!left) this.books.lost(uid);
      if (end.via.length > 0) this.#via.set(process.host.address, end.via);
    });
    node.join();
  }

  mayLeave(process: SimProcess): boolean {
    const node = this.#nodes.get(process);
    if (node === undefined) return false;
    if (!this.settings.plannedOnly) return true;
    const stays = [...this.#nodes].filter(([other, { membership }]) =>
      other !== process && !this.#leaving.has(sender(other)) && membership.view().self.status === 'up'
    );
    return node.membership.view().self.status === 'up' && stays.length > 0;
  }

  async leave(process: SimProcess): Promise<void> {
    const node = this.#nodes.get(process);
    if (node === undefined) return;
    this.#leaving.add(sender(process));
    this.#noteHomeless(node);
    node.stopLoad();
    await node.leave();
  }

  #noteHomeless({ membership }: SpawnNode): void {
    const view = membership.view();
    const going = [...this.#nodes].filter(([process]) => this.#leaving.has(sender(process)));
    const uids = new Set(going.map(([, node]) => node.membership.uid));
    for (const name of this.settings.names) {
      if (eligibleHosts(view, name).every(({ uid }) => uids.has(uid))) this.#homeless.add(name);
    }
  }

  call(process: SimProcess, action: string, argument: string): void {
    const name = this.settings.names[Number(argument) % this.settings.names.length];
    if (name !== undefined && !action.startsWith('lease')) this.#nodes.get(process)?.act(action, name);
  }

  check(process: SimProcess | undefined): void {
    const membership = process && this.#nodes.get(process)?.membership;
    if (process && membership) this.#rules.observe(membership, process.name, membership.view());
    const { world } = this.#context;
    if (world.now < this.#nextAudit) return;
    this.#nextAudit = world.now + auditEveryMs;
    this.#audit();
  }

  quiesce(): void {
    this.quiet = true;
    for (const node of this.#nodes.values()) node.stopLoad();
  }

  unsettled(): string | undefined {
    const nodes = this.#booked();
    return disagreement(nodes) ?? this.#pending() ?? this.#unsettledNames(nodes[0]!);
  }

  finish(): void {
    this.#audit();
    this.books.finish(this.#booked()[0]!.view);
  }

  statistics(): Record<string, number> {
    return {
      ...this.registry.statistics,
      ...this.ledger.statistics,
      ...this.books.statistics,
      ...Object.fromEntries([...this.#outcomes].sort()),
    };
  }

  /** A call has ended so. */
  count(outcome: string): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }

  #booked(): BookedNode[] {
    return [...this.#nodes].map(([process, { membership }]) => ({
      name: process.name,
      uid: membership.uid,
      view: membership.view(),
    }));
  }

  #pending(): string | undefined {
    const waiting = [...this.#nodes].find(([, { pending }]) => pending > 0);
    return waiting && `${waiting[0].name} waits for ${waiting[1].pending} calls`;
  }

  #unsettledNames({ view }: BookedNode): string | undefined {
    const registered = new Map(registrations(view).map((one) => [one.name, one]));
    for (const name of this.settings.names) {
      const problem = this.#unsettledName(name, registered.get(name));
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #unsettledName(name: string, registered: Registration | undefined): string | undefined {
    const living = this.registry.living(name);
    const able = registered === undefined ? [] : this.#able(registered);
    if (living.length !== (able.length > 0 ? 1 : 0)) {
      const where = living.map(({ process }) => process.name).join(' ');
      return `${living.length} instances of ${name} (${where}), ${able.length} nodes may host it`;
    }
    const [only] = living;
    if (only === undefined || registered === undefined) return undefined;
    const host = only.process.host.address;
    if (!able.includes(host)) return `${name} runs on ${only.process.name}, which may not host it`;
    const props = this.made.get(only);
    if (showValue(props) !== showValue(registered.props)) {
      return `${name} was made of ${showValue(props)}, ${showValue(registered.props)} is registered`;
    }
    for (const [process, node] of this.#nodes) {
      if (node.hostOf(name) !== host) {
        return `${process.name} believes ${node.hostOf(name)} to host ${name}, not ${host}`;
      }
      if (node.answered.get(name) !== host) node.probe(name);
      const buffered = node.ledgerOf(name)?.buffered ?? 0;
      if (buffered > 0) return `${process.name} buffers ${buffered} messages for ${name}`;
      if (node.answered.get(name) !== host) return `${name} has not answered ${process.name}`;
    }
    return undefined;
  }

  /** Addresses of nodes that have the kind and the role. */
  #able({ kind, role }: Registration): Address[] {
    return [...this.#nodes].flatMap(([{ host: { address } }, { membership }]) =>
      this.settings.nodes.get(address)!.kinds.includes(kind) && carriesRole(membership.view().self, role)
        ? [address]
        : []
    );
  }

  #audit(): void {
    for (const [process, node] of this.#nodes) {
      for (const name of this.settings.names) {
        const own = node.ledgerOf(name);
        if (own !== undefined) this.ledger.audit(`${sender(process)}>${name}`, own);
      }
    }
    this.books.audit(this.#booked());
  }

  #clusterOf({ clusterId, process }: Instance): string | undefined {
    return clusterId ?? this.#nodes.get(process)?.membership.view().clusterId;
  }
}
