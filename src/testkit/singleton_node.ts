/** One node of the singleton program: actor system, cluster node, singletons, and the load it puts on them. */
import type { Cancel } from '../actor/environment.ts';
import type { ActorRef } from '../actor/ref.ts';
import { ActorSystem } from '../actor/system.ts';
import { anyRetires, retireAll, retireNobody } from '../cluster/full_shutdown.ts';
import type { MembershipView } from '../cluster/member.ts';
import type { ClusterNode, NodeEnd } from '../cluster/node.ts';
import { resolveClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { assemble, type Assembly } from '../facade/assembly.ts';
import { SingletonHostedAnyway } from '../singleton/events.ts';
import { SingletonKey } from '../singleton/key.ts';
import { SingletonStateError } from '../singleton/registry.ts';
import type { Ledger as Books } from '../singleton/sender_stream.ts';
import type { Address } from '../transport/contract.ts';
import { arbiterOf, leaseFactory } from './lease_load.ts';
import { streamName } from './ledger.ts';
import { Liar } from './lies.ts';
import { Prng } from './prng.ts';
import { PersistentWorker } from './persistent_worker.ts';
import type { SimProcess } from './sim_process.ts';
import { simulatedNode } from './simulated_node.ts';
import { SimulationError } from './sim_world.ts';
import { sender, type SingletonRun } from './singleton_program.ts';
import { showValue } from './values.ts';
import { makeWorker, type Tick, type WorkerKind, type WorkMessage } from './workload_actors.ts';

const askTimeoutMs = 4_000;
const noBooks: Books = {
  told: 0,
  acknowledged: 0,
  deadLettered: 0,
  outcomeUnknown: 0,
  buffered: 0,
  resent: 0,
  dropped: 0,
  bufferedBytes: 0,
  windowFull: 0,
};

export class SingletonNode {
  readonly membership: ClusterNode;
  readonly liar: Liar;
  #run: SingletonRun;
  #process: SimProcess;
  #assembly: Assembly;
  #random: Prng;
  #shutdowns: Prng;
  #refs = new Map<string, ActorRef<WorkMessage>>();
  #streams = new Map<string, string>();
  #timers = new Set<Cancel>();
  #loaded = false;
  #seenEpochs = new Map<string, number>();

  private constructor(run: SingletonRun, process: SimProcess, assembly: Assembly) {
    this.#run = run;
    this.#process = process;
    this.#assembly = assembly;
    this.membership = assembly.node;
    this.liar = new Liar(assembly.node, process, new Prng(`${process.world.seed}/lies/${sender(process)}`));
    this.#random = new Prng(`${process.world.seed}/load/${sender(process)}`);
    this.#shutdowns = new Prng(`${process.world.seed}/shutdowns/${sender(process)}`);
  }

  static async start(run: SingletonRun, process: SimProcess, via: readonly Address[]): Promise<SingletonNode> {
    const { environment } = process;
    const system = ActorSystem.create('sim', { environment, logger: environment.log });
    const uid = `${Math.floor(process.random.next() * 46_656).toString(36).padStart(3, '0')}-${sender(process)}`;
    const { address } = process.host;
    const roles = run.settings.nodes.get(address)?.roles ?? [];
    const { leases, arbiter, downing, callers, gossipToAllUpTo } = run.settings;
    const options = resolveClusterOptions({
      ...simulatedNode(process).settings,
      name: 'sim',
      seeds: [...run.settings.seeds, ...via],
      roles,
      downing: arbiter === undefined ? downing : arbiterOf(arbiter, run.leaseBackend, process),
      ...(leases === undefined ? {} : { leaseVoters: leases.voters, leaseMaxTtlMs: leases.maxTtlMs }),
      ...(callers === undefined ? {} : { callers }),
    }, { systemName: 'sim', log: environment.log });
    const more = gossipToAllUpTo === undefined ? {} : { gossipToAllUpTo };
    const assembly = await assemble(system, { ...options, ...more }, uid);
    const node = new SingletonNode(run, process, assembly);
    node.#listen(system);
    return node;
  }

  /** Starts the singletons of this node and looks for the cluster; the load begins once this node is up. */
  join(): void {
    for (const kind of this.#run.settings.kinds) this.#startOrRefer(kind);
    this.membership.onChange((view, changes) => {
      this.#noteEpochs(view);
      if (changes.some((change) => change.kind === 'self-up')) this.#startLoad();
    });
    this.membership.start();
    this.membership.onEnd(({ rejoin }) => {
      this.#process.track(this.#assembly.whenEnded).then(() => {
        if (rejoin) this.#process.exit();
      });
    });
  }

  #noteEpochs({ members }: MembershipView): void {
    for (const { uid, hosting } of members) {
      if (uid === this.membership.uid) continue;
      for (const [name, { epoch }] of hosting) {
        this.#seenEpochs.set(name, Math.max(epoch, this.#seenEpochs.get(name) ?? 0));
      }
    }
  }

  onEnd(run: (end: NodeEnd) => void): void {
    this.membership.onEnd((end) => {
      this.stopLoad();
      run(end);
    });
  }

  leave(): Promise<void> {
    return this.#assembly.leave();
  }

  stopLoad(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#loaded = false;
  }

  /** No more messages; what was stopped by a fault is started again. */
  quiesce(): void {
    this.stopLoad();
    for (const kind of this.#run.settings.kinds) this.act('start', kind);
    this.#callOff();
  }

  /** A full shutdown of the whole cluster that is called off a little later, by this node or at the end. */
  #prepareShutdown(): void {
    if (this.membership.view().self.status !== 'up') return;
    this.#process.world.record('shutdown', this.#process.name, 'prepared');
    retireAll(this.membership);
    this.#later(this.#shutdowns.between(200, 3_000), () => retireNobody(this.membership));
  }

  /** Again and again, since a side that is cut off may not have heard of it yet. */
  #callOff(): void {
    if (this.membership.ended() === undefined && anyRetires(this.membership.view())) retireNobody(this.membership);
    this.#later(500, () => this.#callOff());
  }

  /** `target`: where a move goes; default: drawn. */
  act(action: string, kind: WorkerKind, target?: Address): void {
    const { registry } = this.#assembly;
    const mayPrepare = action === 'move' && !this.#run.settings.plannedOnly;
    if (mayPrepare && this.#shutdowns.chance(0.1)) this.#prepareShutdown();
    try {
      if (action === 'move' && target !== undefined) registry.move(kind.name, target);
      else if (action === 'move' && kind.spread === true && this.#random.chance(0.5)) registry.rebalance();
      else if (action === 'move') registry.move(kind.name, this.#moveTarget());
      else if (action === 'stop') registry.stop(kind.name);
      else if (action === 'start' && !registry.isStarted(kind.name)) this.#startOrRefer(kind);
    } catch (error) {
      if (!(error instanceof SingletonStateError)) throw error;
      this.#process.world.record('refused', this.#process.name, error.message);
      if (action === 'start') this.#later(500, () => this.act('start', kind));
    }
  }

  ledgerOf(name: string): Books {
    return this.#assembly.registry.find(name)?.proxy.stream.ledger() ?? noBooks;
  }

  hostOf(name: string): Address | undefined {
    return this.#assembly.registry.hostOf(name);
  }

  #moveTarget(): Address | undefined {
    const { members } = this.membership.view();
    return this.#random.chance(0.4) ? undefined : this.#random.pick(members).address;
  }

  #startOrRefer(kind: WorkerKind): void {
    const { registry } = this.#assembly;
    const key = SingletonKey.of<WorkMessage | Tick>(kind.name, kind.role);
    if (this.#run.settings.nodes.get(this.#process.host.address)?.starts.has(kind.name) !== true) {
      this.#refs.set(kind.name, registry.ref(key));
      return;
    }
    const place = {
      registry: this.#run.registry,
      ledger: this.#run.ledger,
      process: this.#process,
      random: this.#random,
      plannedOnly: this.#run.settings.plannedOnly,
      leased: this.#run.settings.leases !== undefined,
      clusterId: () => this.membership.view().clusterId,
      seenEpoch: (name: string) => this.#seenEpochs.get(name) ?? 0,
      quiet: () => this.#run.quiet,
    };
    const delivery = kind.atLeastOnce === true ? 'at-least-once' : 'at-most-once';
    const placement = kind.spread === true ? 'spread' : 'oldest';
    const { leases } = this.#run.settings;
    const lease = leases === undefined ? {} : { lease: leaseFactory(leases, this.#run.leaseBackend, this.#process) };
    const { disks } = this.#run;
    const make = disks !== undefined && kind.persistent === true
      ? () => new PersistentWorker(kind, place, disks)
      : () => makeWorker(kind, place);
    this.#refs.set(kind.name, registry.start(key, make, { delivery, placement, ...lease }));
  }

  #listen(system: ActorSystem): void {
    system.eventStream.subscribe(SingletonHostedAnyway, (event) => this.#run.registry.hostedAnyway(event.name));
    system.deadLetters.subscribe((letter) => {
      const message = letter.message as Partial<WorkMessage>;
      if (typeof message?.stream !== 'string' || typeof message.seq !== 'number') return;
      const { stream, seq } = message;
      this.#process.world.record('dead', this.#process.name, `${stream} ${seq} ${letter.reason}`);
      if (letter.reason === 'terminated' && this.membership.ended() === undefined) {
        const text = `message ${seq} of ${stream} is a dead letter (terminated) though its sender has not ended`;
        this.#process.world.fail(new SimulationError('S3', text));
      }
      if (stream.startsWith(`${sender(this.#process)}>`)) {
        return this.#run.ledger.deadLettered({ stream, seq }, letter.reason);
      }
      const text =
        `message ${seq} of ${stream} is a dead letter (${letter.reason}) on ${this.#process.name}, not at its sender`;
      this.#process.world.fail(new SimulationError('S3', text));
    });
  }

  #startLoad(): void {
    if (this.#loaded || this.#run.quiet) return;
    this.#loaded = true;
    for (const kind of this.#run.settings.kinds) this.#tellLater(kind.name);
  }

  #tellLater(name: string): void {
    const { tellEveryMs } = this.#run.settings;
    this.#later(this.#random.between(0, 2 * tellEveryMs), () => {
      this.#tell(name);
      if (this.#loaded) this.#tellLater(name);
    });
  }

  #tell(name: string): void {
    const ref = this.#refs.get(name);
    if (ref === undefined) return;
    const ask = this.#random.chance(0.1);
    const message: WorkMessage = { ...this.#run.ledger.told(this.#streamTo(name)), ask };
    if (!ask) return ref.tell(message);
    const { world, name: node } = this.#process;
    this.#process.track(ref.ask(message, askTimeoutMs)).then(
      () => world.record('answer', node, `${name} ${message.seq}`),
      (error) => world.record('no answer', node, `${name} ${message.seq} ${showValue(error).slice(0, 80)}`),
    );
  }

  /** The same text each time: it is looked up by. */
  #streamTo(name: string): string {
    let stream = this.#streams.get(name);
    if (stream === undefined) this.#streams.set(name, stream = streamName(sender(this.#process), name));
    return stream;
  }

  #later(ms: number, run: () => void): void {
    const cancel = this.#process.timers.set(ms, () => {
      this.#timers.delete(cancel);
      run();
    });
    this.#timers.add(cancel);
  }
}
