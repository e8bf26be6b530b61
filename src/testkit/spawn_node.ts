/** One node of the spawn program: it spawns, removes, moves and messages singletons by name. */
import type { Cancel } from '../actor/environment.ts';
import { ActorSystem } from '../actor/system.ts';
import type { MembershipView } from '../cluster/member.ts';
import type { ClusterNode, NodeEnd } from '../cluster/node.ts';
import { resolveClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { assemble, type Assembly } from '../facade/assembly.ts';
import { SingletonHostedAnyway } from '../singleton/events.ts';
import { SingletonStateError } from '../singleton/registry.ts';
import type { Ledger as Books } from '../singleton/sender_stream.ts';
import { SpawnError, type SpawnErrorCode } from '../singleton/spawn_errors.ts';
import type { Address } from '../transport/contract.ts';
import { streamName } from './ledger.ts';
import { Prng } from './prng.ts';
import type { SimProcess } from './sim_process.ts';
import { simulatedNode } from './simulated_node.ts';
import { SimulationError } from './sim_world.ts';
import { sender } from './singleton_program.ts';
import type { CallEnd } from './spawn_books.ts';
import { drawSpawn, kindOption, spawnedKinds } from './spawn_load.ts';
import type { SpawnRun } from './spawn_program.ts';
import { showValue } from './values.ts';
import type { WorkAnswer, WorkerPlace, WorkMessage } from './workload_actors.ts';

const probeTimeoutMs = 2_000;
const callOptions = { spawnTimeoutMs: 20_000, waitIntervalMs: 300, retries: 6 };
/** What was asked for may still happen. */
const unsure: ReadonlySet<SpawnErrorCode> = new Set<SpawnErrorCode>([
  'leader-unavailable',
  'no-quorum',
  'timeout',
  'cluster-disabled',
]);

export class SpawnNode {
  readonly process: SimProcess;
  #made: Assembly | undefined;
  #run: SpawnRun;
  #random: Prng;
  #timers = new Set<Cancel>();
  #loaded = false;
  #calls = 0;
  #seenEpochs = new Map<string, number>();
  /** Calls that have not been answered. */
  pending = 0;
  /** Names whose ref has answered since the load stopped, with the host at that time. */
  readonly answered = new Map<string, Address | undefined>();
  #probing = new Set<string>();

  constructor(run: SpawnRun, process: SimProcess) {
    this.#run = run;
    this.process = process;
    this.#random = new Prng(`${process.world.seed}/load/${sender(process)}`);
  }

  async start(via: readonly Address[]): Promise<void> {
    const { environment, host: { address }, random } = this.process;
    const system = ActorSystem.create('sim', { environment, logger: environment.log });
    const uid = `${Math.floor(random.next() * 46_656).toString(36).padStart(3, '0')}-${sender(this.process)}`;
    const { settings } = this.#run;
    const { roles, kinds } = settings.nodes.get(address)!;
    const options = resolveClusterOptions({
      ...simulatedNode(this.process).settings,
      name: 'sim',
      seeds: [...settings.seeds, ...via],
      roles,
      downing: settings.downing,
      kinds: spawnedKinds.filter((kind) => kinds.includes(kind.name)).map((kind) =>
        kindOption(kind, this.#place(), (instance, props) => this.#run.made.set(instance, props))
      ),
    }, { systemName: 'sim', log: environment.log });
    this.#made = await assemble(system, options, uid);
    this.#listen(system);
  }

  get #assembly(): Assembly {
    if (this.#made === undefined) throw new Error('the node has not been started');
    return this.#made;
  }

  get membership(): ClusterNode {
    return this.#assembly.node;
  }

  #place(): WorkerPlace {
    return {
      registry: this.#run.registry,
      ledger: this.#run.ledger,
      process: this.process,
      random: this.#random,
      plannedOnly: this.#run.settings.plannedOnly,
      leased: false,
      clusterId: () => this.membership.view().clusterId,
      seenEpoch: (name) => this.#seenEpochs.get(name) ?? 0,
      quiet: () => this.#run.quiet,
    };
  }

  /** Looks for the cluster; the load begins once this node is up. */
  join(): void {
    this.membership.onChange((view, changes) => {
      this.#noteEpochs(view);
      if (changes.some((change) => change.kind === 'self-up')) this.#startLoad();
    });
    this.membership.start();
    this.process.track(this.#assembly.whenEnded).then(() => {
      if (this.membership.ended()?.rejoin === true) this.process.exit();
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

  ledgerOf(name: string): Books | undefined {
    return this.#assembly.registry.find(name)?.proxy.stream.ledger();
  }

  hostOf(name: string): Address | undefined {
    return this.#assembly.registry.hostOf(name);
  }

  /** A ref of `name`, got here and now, must answer. */
  probe(name: string): void {
    if (this.#probing.has(name)) return;
    this.#probing.add(name);
    const host = this.hostOf(name);
    const message: WorkMessage = { ...this.#run.ledger.told(streamName(sender(this.process), name)), ask: true };
    const asked = this.#assembly.registry.ref<WorkMessage>(name).ask<WorkAnswer>(message, probeTimeoutMs);
    this.process.track(asked).then(
      () => this.answered.set(name, host),
      () => {},
    ).then(() => this.#probing.delete(name));
  }

  act(action: string, name: string): void {
    if (action === 'stop') return this.#despawn(name);
    if (action === 'start') return this.#spawn();
    try {
      if (action === 'move') this.#assembly.registry.move(name);
    } catch (error) {
      if (!(error instanceof SingletonStateError)) throw error;
      this.process.world.record('refused', this.process.name, error.message);
    }
  }

  #spawn(given?: string): void {
    const mark = `${sender(this.process)}#${++this.#calls}`;
    const wanted = drawSpawn(this.#random, this.#run.settings, mark, given);
    const { name, kind, role } = wanted;
    const options = { ...callOptions, props: wanted, ...(role === undefined ? {} : { role }) };
    const end = this.#run.books.spawning(wanted);
    this.#follow(`spawn ${name} ${kind} ${role ?? '-'}`, this.#assembly.registry.spawn(name, kind, options), end);
  }

  #despawn(name: string): void {
    if (!this.#run.settings.removes) return;
    const end = this.#run.books.removing(name);
    // Often it is wanted again at once, so that some nodes hear of both together.
    const after = () => void (this.#loaded && this.#random.chance(0.5) && this.#spawn(name));
    this.#follow(`despawn ${name}`, this.#assembly.registry.despawn(name, callOptions), end, after);
  }

  /** Notes how a call ends. */
  #follow(
    what: string,
    call: Promise<unknown>,
    end: (how: CallEnd, view: MembershipView) => void,
    after: () => void = () => {},
  ): void {
    const { world, name: node } = this.process;
    world.record('call', node, what);
    this.pending++;
    this.process.track(call).then(
      () => {
        world.record('done', node, what);
        this.#run.count(what.startsWith('spawn') ? 'spawned' : 'despawned');
        end('done', this.membership.view());
        after();
      },
      (error: unknown) => {
        if (!(error instanceof SpawnError)) return world.fail(new SimulationError('spawn', showValue(error)));
        world.record('failed', node, `${what} ${error.code}`);
        this.#run.count(error.code);
        end(unsure.has(error.code) ? 'unsure' : 'refused', this.membership.view());
      },
    ).then(() => this.pending--);
  }

  #listen(system: ActorSystem): void {
    system.eventStream.subscribe(SingletonHostedAnyway, (event) => this.#run.registry.hostedAnyway(event.name));
    system.deadLetters.subscribe((letter) => {
      const message = letter.message as Partial<WorkMessage>;
      if (typeof message?.stream !== 'string' || typeof message.seq !== 'number') return;
      const { stream, seq } = message;
      this.process.world.record('dead', this.process.name, `${stream} ${seq} ${letter.reason}`);
      if (stream.startsWith(`${sender(this.process)}>`)) {
        return this.#run.ledger.deadLettered({ stream, seq }, letter.reason);
      }
      const text = `message ${seq} of ${stream} is a dead letter (${letter.reason}) on ${this.process.name}`;
      this.process.world.fail(new SimulationError('S3', `${text}, not at its sender`));
    });
  }

  #startLoad(): void {
    if (this.#loaded || this.#run.quiet) return;
    this.#loaded = true;
    const { callEveryMs, tellEveryMs, names } = this.#run.settings;
    this.#repeat(callEveryMs, () => {
      if (this.#random.chance(0.75)) this.#spawn();
      else this.#despawn(this.#random.pick(names));
    });
    for (const name of names) this.#repeat(tellEveryMs, () => this.#tell(name));
  }

  #repeat(meanMs: number, run: () => void): void {
    const cancel = this.process.timers.set(this.#random.between(0, 2 * meanMs), () => {
      this.#timers.delete(cancel);
      run();
      if (this.#loaded) this.#repeat(meanMs, run);
    });
    this.#timers.add(cancel);
  }

  #tell(name: string): void {
    const message: WorkMessage = { ...this.#run.ledger.told(streamName(sender(this.process), name)), ask: false };
    this.#assembly.registry.ref<WorkMessage>(name).tell(message);
  }
}
