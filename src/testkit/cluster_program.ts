/** The simulator's program made of a user's own singletons: what `simulate` runs on every host of its world. */
import { ActorSystem } from '../actor/system.ts';
import type { ClusterSettings } from '../cluster/cluster_options.ts';
import { Cluster } from '../facade/cluster.ts';
import { SingletonStateError } from '../singleton/registry.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import type { SimProcess } from './sim_process.ts';
import { simulatedNode } from './simulated_node.ts';
import { SimulationError, type World } from './sim_world.ts';

/** A program of your own for the simulator, in terms of `Cluster`. */
export interface ClusterScene {
  /** In reports. Default 'cluster'. */
  readonly name?: string;
  /** Names of singletons that `call` faults with the action `move` are about. Default: none. */
  readonly singletons?: readonly string[];
  /** Options of every node. Host, port and transport are the simulator's; the seeds are all hosts. */
  readonly settings?: Omit<ClusterSettings, 'host' | 'port' | 'transport' | 'runtime' | 'seeds'>;
  /** Called on each node before it looks for its cluster, again after each restart: starts singletons and their load. */
  readonly start: (cluster: Cluster, process: SimProcess) => void;
  /** Called after every step. A text is a broken rule, and ends the run. */
  readonly check?: (world: World) => string | undefined;
  /** The faults are over: stop what keeps the run from settling. */
  readonly quiesce?: () => void;
  /** What is still missing once the faults are over, for people; undefined when all is well. Default: nothing. */
  readonly unsettled?: (clusters: readonly Cluster[]) => string | undefined;
}

/** `makeScene` is called once for each run, so that nothing of one run is left in the next. */
export function clusterProgram(makeScene: (context: RunContext) => ClusterScene): Program {
  return { name: 'cluster', create: (context) => new ClusterRun(makeScene(context), context) };
}

class ClusterRun implements ProgramRun {
  #scene: ClusterScene;
  #context: RunContext;
  #clusters = new Map<SimProcess, Cluster>();

  constructor(scene: ClusterScene, context: RunContext) {
    this.#scene = scene;
    this.#context = context;
  }

  boot(process: SimProcess): void {
    const { environment, settings } = simulatedNode(process);
    const name = this.#scene.name ?? 'cluster';
    const system = ActorSystem.create(name, { environment, logger: environment.log });
    const seeds = this.#context.addresses;
    const options = { joinTimeoutMs: 3_600_000, ...this.#scene.settings, ...settings, seeds };
    const joined = Cluster.join(system, options, {
      onListening: (cluster) => {
        this.#scene.start(cluster, process);
        this.#clusters.set(process, cluster);
        process.onExit(() => void this.#clusters.delete(process));
        cluster.whenEnded.then(() => process.exit());
      },
    });
    joined.catch((error: Error) => {
      if (this.#clusters.has(process)) process.exit();
      else if (process.alive) process.world.fail(error);
    });
  }

  async leave(process: SimProcess): Promise<void> {
    await this.#clusters.get(process)?.leave();
  }

  call(process: SimProcess, action: string, argument: string): void {
    const cluster = this.#clusters.get(process);
    if (action === 'down') cluster?.down(this.#context.world.host(argument).address);
    if (action === 'move') this.#move(process, cluster, argument);
  }

  /** The profiles name singletons by number. */
  #move(process: SimProcess, cluster: Cluster | undefined, argument: string): void {
    const { singletons = [] } = this.#scene;
    const name = singletons[Number(argument) % singletons.length];
    if (cluster === undefined || name === undefined) return;
    try {
      cluster.singleton.move(name);
    } catch (error) {
      if (!(error instanceof SingletonStateError)) throw error;
      process.world.record('refused', process.name, error.message);
    }
  }

  check(): void {
    const broken = this.#scene.check?.(this.#context.world);
    if (broken !== undefined) throw new SimulationError(this.#scene.name ?? 'cluster', broken);
  }

  quiesce(): void {
    this.#scene.quiesce?.();
  }

  unsettled(): string | undefined {
    const clusters = [...this.#clusters.values()];
    for (const [process, cluster] of this.#clusters) {
      const up = cluster.upMembers().length;
      if (up !== clusters.length) return `${process.name} sees ${up} members up, ${clusters.length} nodes run`;
    }
    return this.#scene.unsettled?.(clusters);
  }
}
