/** What the HTTP app asks of a node, answered from the node's own parts. */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { ClusterNode } from '../cluster/node.ts';
import type { ResolvedClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { describeTiming } from '../cluster/timing.ts';
import type {
  ClusterInspection,
  InspectionEvent,
  LeaseDetail,
  MembersReport,
  MetricSample,
  MoveOutcome,
  Readiness,
  RebalanceOutcome,
  ShutdownOutcome,
  SingletonDetail,
  SingletonReport,
} from '../http/inspection.ts';
import { SingletonHosted, SingletonHostedAnyway, SingletonStopped } from '../singleton/events.ts';
import type { LeaseReport } from '../singleton/lease_keeper.ts';
import { eligibleHosts, hostOf, pinnedUid, roleOf } from '../singleton/host.ts';
import { hostingProblem } from '../singleton/problem.ts';
import { type SingletonRegistry, SingletonStateError } from '../singleton/registry.ts';
import type { Phase } from '../singleton/manager_state.ts';
import type { Singleton } from '../singleton/singleton.ts';
import { isKindMark, readRegistration, registrations, spawnKey } from '../singleton/spawn_registration.ts';
import type { DownOutcome } from '../cluster/contract.ts';
import type { Address, SeedAnswer } from '../transport/contract.ts';
import type { LinkedPeers } from '../transport/peers.ts';
import type { CallerService } from './caller_service.ts';
import { describeChange, describeSingletonEvent } from './event_texts.ts';
import { cancelFullShutdown, prepareForFullShutdown } from './full_shutdown.ts';
import { ClusterStateError } from './state_error.ts';
import { HostWatch, presentHost } from './host_watch.ts';
import { nodeSamples } from './node_samples.ts';

/** Shorter than a client waits for an answer. */
const shutdownKnownMs = 4_000;

export class NodeInspection implements ClusterInspection {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly token: string | undefined;
  readonly reads: 'open' | 'token';
  readonly #system: ActorSystem;
  readonly #options: ResolvedClusterOptions;
  readonly #node: ClusterNode;
  readonly #registry: SingletonRegistry;
  readonly #peers: LinkedPeers;
  readonly #callers: CallerService;

  constructor(
    system: ActorSystem,
    options: ResolvedClusterOptions,
    node: ClusterNode,
    registry: SingletonRegistry,
    peers: LinkedPeers,
    callers: CallerService,
  ) {
    this.environment = system.environment;
    this.token = options.token?.reveal();
    this.reads = options.reads;
    this.#system = system;
    this.#options = options;
    this.#node = node;
    this.#registry = registry;
    this.#peers = peers;
    this.#callers = callers;
  }

  seed(): SeedAnswer {
    return this.#node.seedAnswer();
  }

  timing(): Readonly<Record<string, number>> {
    return describeTiming(this.#options.timing, Math.max(1, this.#node.view().members.length));
  }

  readiness(): Readiness {
    const reason = this.#node.readiness();
    return {
      ready: reason === undefined,
      reasons: [...(reason === undefined ? [] : [reason]), ...this.#leaseProblems()],
    };
  }

  /** They do not make this node less ready: it serves what others host, and no other node would be better off. */
  #leaseProblems(): string[] {
    const split = this.#node.claim()?.problem;
    const waiting = [...this.#registry.all()].flatMap(({ name, manager }) => {
      const why = manager.leaseProblem;
      return why === undefined ? [] : [`Singleton ${name} waits for its lease: ${why}.`];
    });
    return split === undefined ? waiting : [`A split cannot be decided yet: ${split}.`, ...waiting];
  }

  members(): MembersReport {
    const view = this.#node.view();
    return {
      self: this.#node.address,
      leader: view.leader?.address ?? null,
      members: view.members.map((member) => ({
        address: member.address,
        uid: member.uid,
        status: member.status,
        roles: member.roles,
        upNumber: member.upNumber,
        reachable: member.reachable,
        runtime: member.runtime,
        appVersion: member.appVersion,
      })),
    };
  }

  /** Those this node knows of, those others have started, and those that are registered. */
  singletons(): readonly SingletonReport[] {
    const names = new Set<string>();
    for (const singleton of this.#registry.all()) names.add(singleton.name);
    for (const member of this.#node.view().members) for (const name of member.started.keys()) names.add(name);
    for (const { name } of registrations(this.#node.view())) names.add(name);
    return [...names].filter((name) => !isKindMark(name)).sort().map((name) => this.#report(name));
  }

  singleton(name: string): SingletonDetail | undefined {
    const view = this.#node.view();
    const known = this.#registry.find(name);
    const started = known !== undefined || view.members.some((member) => member.started.has(name));
    if (!started || isKindMark(name)) return undefined;
    const report = this.#report(name);
    const ledger = known?.proxy.stream.ledger();
    const pin = pinnedUid(view, name);
    const lease = known?.manager.leaseReport();
    return {
      ...report,
      ...(lease ? { lease: leaseDetail(lease) } : {}),
      startedOn: view.members.filter((member) => member.started.has(name)).map((member) => member.address),
      pinnedTo: view.members.find((member) => member.uid === pin)?.address ?? null,
      bufferedBytes: ledger?.bufferedBytes ?? 0,
      held: known?.manager.host.held ?? 0,
      heldBytes: known?.manager.host.heldBytes ?? 0,
      counters: {
        told: ledger?.told ?? 0,
        acknowledged: ledger?.acknowledged ?? 0,
        deadLettered: ledger?.deadLettered ?? 0,
        outcomeUnknown: ledger?.outcomeUnknown ?? 0,
        dropped: ledger?.dropped ?? 0,
        resent: ledger?.resent ?? 0,
        windowFull: ledger?.windowFull ?? 0,
        handled: known?.manager.host.handled ?? 0,
        failed: known?.manager.host.failed ?? 0,
        duplicates: known?.manager.host.duplicates ?? 0,
        relayed: known?.relay.relayed ?? 0,
        hostFull: known?.manager.host.full ?? 0,
        hostedAnyway: known?.manager.hostedAnyway ?? 0,
      },
    };
  }

  #report(name: string): SingletonReport {
    const view = this.#node.view();
    const known: Singleton | undefined = this.#registry.find(name);
    const host = presentHost(view, name);
    const claim = host?.claim;
    const last = known?.manager.lastHandOver;
    const started = known?.manager.start !== undefined;
    const registered = readRegistration(view.entries.get(spawnKey(name)));
    return {
      name,
      ...(registered ? { kind: registered.kind } : {}),
      role: roleOf(view, name) ?? registered?.role ?? null,
      host: host?.address ?? null,
      state: started || known?.manager.claim ? known!.manager.state.phase.kind : 'reference',
      epoch: claim?.epoch ?? null,
      since: claim?.since ?? null,
      lastHandOver: last
        ? {
          from: last.from ?? null,
          to: this.#node.address,
          durationMs: Math.round(last.durationMs),
          gapMs: last.gapMs === undefined ? null : Math.round(last.gapMs),
          epoch: last.epoch,
          reason: last.reason,
          at: last.at,
        }
        : null,
      problem: hostingProblem(view, name, known?.manager.leaseProblem) ?? null,
      active: known !== undefined && isActive(known.manager.state.phase),
      told: known?.proxy.stream.ledger().told ?? 0,
      handled: known?.manager.host.handled ?? 0,
      buffered: known?.proxy.stream.ledger().buffered ?? 0,
    };
  }

  metrics(): readonly MetricSample[] {
    return [
      ...nodeSamples(this.#system, this.#node, this.#registry, this.#peers),
      ...this.#callers.samples(),
    ];
  }

  subscribe(listener: (event: InspectionEvent) => void): Cancel {
    const { clock } = this.#system.environment;
    const { eventStream } = this.#system;
    const hosts = new HostWatch();
    hosts.update(this.#node.view(), clock.now());
    const singletonEvent = (event: SingletonHosted | SingletonStopped | SingletonHostedAnyway): void => {
      const seen = event.kind === 'SingletonHosted' && event.reason === 'crash'
        ? hosts.before(event.name, clock.now())
        : undefined;
      listener({ at: clock.wall(), ...describeSingletonEvent(event), ...seen });
    };
    const cancels = [
      this.#node.onChange((view, changes) => {
        for (const event of hosts.update(view, clock.now())) listener({ at: clock.wall(), ...event });
        for (const change of changes) {
          for (const event of describeChange(change, view, clock.wall())) listener(event);
        }
      }),
      eventStream.subscribe(SingletonHosted, singletonEvent),
      eventStream.subscribe(SingletonStopped, singletonEvent),
      eventStream.subscribe(SingletonHostedAnyway, singletonEvent),
    ];
    return () => {
      for (const cancel of cancels) cancel();
    };
  }

  leave(): Promise<void> {
    return this.#node.leave();
  }

  down(address: Address): DownOutcome {
    return this.#node.down(address);
  }

  async rebalance(): Promise<RebalanceOutcome> {
    try {
      const moves = [...this.#registry.rebalance()].map(([singleton, to]) => ({ singleton, to }));
      return { kind: 'moved', moves };
    } catch (error) {
      if (!(error instanceof SingletonStateError)) throw error;
      return { kind: 'refused', message: error.message, hint: 'Ask another node, or call the shutdown off.' };
    }
  }

  async prepareShutdown(): Promise<ShutdownOutcome> {
    try {
      await prepareForFullShutdown(this.#node, { timeoutMs: shutdownKnownMs });
      return { kind: 'prepared', members: this.members().members.map(({ address }) => address) };
    } catch (error) {
      if (!(error instanceof ClusterStateError)) throw error;
      return { kind: 'refused', message: error.message, hint: 'It stands, and is known to all others. Ask again.' };
    }
  }

  cancelShutdown(): boolean {
    return cancelFullShutdown(this.#node);
  }

  move(name: string, to: Address | undefined): Promise<MoveOutcome> {
    const view = this.#node.view();
    const before = this.#report(name);
    if (!this.singletons().some((one) => one.name === name)) return Promise.resolve({ kind: 'unknown-singleton' });
    try {
      this.#registry.move(name, to);
    } catch (error) {
      if (!(error instanceof SingletonStateError)) throw error;
      const able = eligibleHosts(view, name).map((member) => member.address);
      const hint = `Members that may host it: ${able.join(', ') || 'none'}.`;
      return Promise.resolve({ kind: 'refused', message: error.message, hint });
    }
    const target = hostOf(this.#node.view(), name)?.address ?? to ?? '';
    return Promise.resolve({ kind: 'moved', from: before.host, to: target });
  }
}

/** From its start until it has ended, pauses between restarts excepted. */
function isActive(phase: Phase): boolean {
  switch (phase.kind) {
    case 'hosting':
    case 'was-host':
      return phase.instance !== 'backing-off';
    case 'handing-over':
    case 'stopping':
      return true;
    default:
      return false;
  }
}

function leaseDetail({ state, token, remainingMs, problem, acquired, denied, failed, lost }: LeaseReport): LeaseDetail {
  return {
    state,
    token: state === 'held' ? token : null,
    remainingMs,
    problem: problem ?? null,
    counters: { acquired, denied, failed, lost },
  };
}
