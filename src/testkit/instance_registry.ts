/**
 * The outside witness of promise S1: every singleton instance reports its life here, in the one virtual time of the world.
 *
 * Rules, per singleton name:
 * 1. Once a younger instance has begun to handle, an older one starts no handler, for ever.
 * 2. When an instance comes into being, no older one is inside a handler in a process that runs. (In a suspended process a
 *    handler may be frozen half-way, and goes on when the process wakes; it is counted, and rule 1 applies to the next.)
 * 3. In runs where every move is planned, no older instance exists at all: its `postStop` has settled.
 * 4. An epoch is above every epoch its node has seen another instance claim (S5: per surviving side). In runs of planned
 *    moves it is above every earlier one within its cluster id. A restart by supervision, in place, keeps its epoch.
 *
 * 5. With leases (`leased`) nothing excuses two: no start is announced as `host-anyway`, epochs grow from handler to handler
 *    over all clusters, and what passes the fence at the end of a handler does so before a younger instance handles.
 * 6. In runs in which nodes only join, an instance comes into being where the one before was (S4).
 *
 * A start that was announced as `host-anyway` is excused from rules 1 to 3 against the instances that existed then. So are
 * two instances for which `forked` answers true; they are counted.
 */
import type { SimProcess } from './sim_process.ts';
import { SimulationError, type World } from './sim_world.ts';

/** One instance of a singleton in a simulation. */
export interface Instance {
  readonly singleton: string;
  readonly process: SimProcess;
  readonly order: number;
  readonly bornAt: number;
  epoch: number | undefined;
  /** Of the cluster its node belongs to; set together with the epoch. */
  clusterId: string | undefined;
  /** Orders of younger instances that a fork excuses. */
  readonly forkedFrom: Set<number>;
  handlers: number;
  handled: number;
  /** When its latest handler began. */
  begunAt: number;
  terminatedAt: number | undefined;
}

/** Handlers of the simulated load are over within this once their process runs. */
const handlerRestMs = 500;

/** What holds where every singleton has a lease. */
export interface LeaseRules {
  /** Is there anything that tokens may rest on at present? */
  readonly epochsGrow: () => boolean;
}

/**
 * Keeps count of the instances of a simulation, and ends the run when two of one singleton handle messages at once or
 * an epoch goes back.
 */
export class InstanceRegistry {
  readonly statistics = { instances: 0, handled: 0, frozenHandlers: 0, hostedAnyway: 0, forks: 0 };
  #world: World;
  #plannedOnly: boolean;
  #instances = new Map<string, Instance[]>();
  #epochs = new Map<string, { epoch: number; by: string }>();
  /** Per singleton: instances up to this order may overlap with younger ones. */
  #excusedUpTo = new Map<string, number>();
  #order = 0;
  #forked: (older: Instance, younger: Instance) => boolean;
  #leases: LeaseRules | undefined;
  #stays: (singleton: string) => boolean;
  /** With leases: the largest epoch that has handled a message. */
  #handledEpochs = new Map<string, number>();

  constructor(
    world: World,
    plannedOnly: boolean,
    forked: (older: Instance, younger: Instance) => boolean = () => false,
    leases?: LeaseRules,
    stays: (singleton: string) => boolean = () => false,
  ) {
    this.#world = world;
    this.#plannedOnly = plannedOnly;
    this.#forked = forked;
    this.#leases = leases;
    this.#stays = stays;
  }

  /** A constructor has run. */
  born(singleton: string, process: SimProcess): Instance {
    const instances = this.#of(singleton);
    const instance: Instance = {
      singleton,
      process,
      order: ++this.#order,
      bornAt: this.#world.now,
      epoch: undefined,
      clusterId: undefined,
      forkedFrom: new Set(),
      handlers: 0,
      handled: 0,
      begunAt: -Infinity,
      terminatedAt: undefined,
    };
    for (const older of instances) this.#checkBirth(older, instance);
    const last = instances.at(-1);
    if (last !== undefined && last.process !== process && this.#stays(singleton)) {
      this.#broken('S4', instance, `comes into being although nobody has left since ${describe(last)}`);
    }
    instances.push(instance);
    this.statistics.instances++;
    this.#world.record('born', process.name, singleton);
    return instance;
  }

  /** The instance knows its epoch now. `seen`: the highest that its node has seen another node claim before. */
  epoch(instance: Instance, epoch: number, clusterId = '', seen = 0): void {
    instance.epoch = epoch;
    instance.clusterId = clusterId;
    const key = `${clusterId}/${instance.singleton}`;
    const last = this.#epochs.get(key);
    const by = `${instance.process.name}/${instance.process.incarnation}`;
    if (!Number.isSafeInteger(epoch)) this.#broken('S5', instance, `epoch ${epoch} is no safe integer`);
    if (epoch <= seen) this.#broken('S5', instance, `epoch ${epoch} is not above ${seen}, which its node has seen`);
    const restarted = last !== undefined && epoch === last.epoch && by === last.by;
    if (this.#plannedOnly && last !== undefined && epoch <= last.epoch && !restarted) {
      this.#broken('S5', instance, `epoch ${epoch} is not above ${last.epoch} of ${last.by}`);
    }
    this.#epochs.set(key, { epoch, by });
  }

  /** A handler (of a message, a timer, a receive timeout) starts. Call the result when it has settled. */
  handling(instance: Instance): () => void {
    if (instance.terminatedAt !== undefined) this.#broken('S1', instance, 'handles a message after its postStop');
    this.#checkYounger(instance, 'handles a message');
    if (this.#leases?.epochsGrow() === true) this.#checkEpoch(instance);
    instance.handlers++;
    instance.handled++;
    instance.begunAt = this.#world.now;
    this.statistics.handled++;
    let ended = false;
    return () => {
      if (!ended) instance.handlers--;
      ended = true;
    };
  }

  /** With leases: a handler does something that its fence has let through. */
  acting(instance: Instance): void {
    this.#checkYounger(instance, 'passes its fence');
  }

  #checkYounger(instance: Instance, does: string): void {
    for (const other of this.#of(instance.singleton)) {
      if (other.order <= instance.order || other.handled === 0 || this.#excused(instance)) continue;
      if (this.#isFork(instance, other)) continue;
      this.#broken('S1', instance, `${does} after ${describe(other)} did`);
    }
  }

  #checkEpoch(instance: Instance): void {
    const { singleton, epoch = 0 } = instance;
    const highest = this.#handledEpochs.get(singleton) ?? 0;
    if (epoch < highest) this.#broken('S5', instance, `handles a message after epoch ${highest} did`);
    this.#handledEpochs.set(singleton, Math.max(epoch, highest));
  }

  /** `postStop` has settled: nothing of this instance runs any more. */
  terminated(instance: Instance): void {
    if (instance.terminatedAt !== undefined) return;
    instance.terminatedAt = this.#world.now;
    this.#world.record('ended', instance.process.name, instance.singleton);
  }

  /** A node announced that it hosts although a silent peer may host too. */
  hostedAnyway(singleton: string): void {
    if (this.#leases !== undefined) {
      this.#world.fail(new SimulationError('S1', `${singleton} was hosted anyway, with a lease`));
    }
    this.statistics.hostedAnyway++;
    this.#excusedUpTo.set(singleton, this.#order);
  }

  /** Instances that exist now: not terminated, in a process that lives. */
  living(singleton: string): Instance[] {
    return this.#of(singleton).filter((instance) => alive(instance));
  }

  #checkBirth(older: Instance, born: Instance): void {
    if (!alive(older) || this.#excused(older)) return;
    if (this.#plannedOnly) {
      this.#broken(
        'S1',
        born,
        `comes into being while ${describe(older)} has not terminated, in a run of planned moves`,
      );
    }
    if (this.#isFork(older, born) || older.handlers === 0) return;
    if (!this.#frozen(older)) {
      this.#broken('S1', born, `comes into being while ${describe(older)} handles a message`);
    }
    this.statistics.frozenHandlers++;
  }

  /** Its handlers began before its process was stopped, and have had no time since to end. */
  #frozen({ process, begunAt }: Instance): boolean {
    if (process.suspended) return true;
    return begunAt < process.resumedAt && this.#world.now - process.resumedAt <= handlerRestMs;
  }

  /** A pair that was forked once stays excused: after the heal either of them may be the one that lives on. */
  #isFork(older: Instance, younger: Instance): boolean {
    if (older.forkedFrom.has(younger.order)) return true;
    if (!this.#forked(older, younger)) return false;
    older.forkedFrom.add(younger.order);
    this.statistics.forks++;
    return true;
  }

  #excused(older: Instance): boolean {
    return older.order <= (this.#excusedUpTo.get(older.singleton) ?? 0);
  }

  #of(singleton: string): Instance[] {
    let instances = this.#instances.get(singleton);
    if (instances === undefined) this.#instances.set(singleton, instances = []);
    return instances;
  }

  #broken(rule: string, instance: Instance, what: string): void {
    this.#world.fail(new SimulationError(rule, `${describe(instance)} ${what}`));
  }
}

function alive(instance: Instance): boolean {
  return instance.terminatedAt === undefined && instance.process.alive;
}

function describe(instance: Instance): string {
  const { singleton, process, epoch, bornAt } = instance;
  return `${singleton} on ${process.name}/${process.incarnation} (epoch ${epoch ?? '?'}, born at ${bornAt.toFixed(3)})`;
}
