/**
 * The simulator's program for callers from outside: the singletons of `singletons` on two thirds of the hosts, and on the
 * rest callers, who tell through failovers of hosts and of the nodes they are connected to. Their books are held to the same
 * rules as those of members.
 */
import { callerPrefix } from '../singleton/outside.ts';
import { Caller } from '../callers/caller.ts';
import type { CallerGrant } from '../cluster/caller_grants.ts';
import type { Cancel } from '../actor/environment.ts';
import type { Address } from '../transport/contract.ts';
import { streamName } from './ledger.ts';
import { Prng } from './prng.ts';
import type { Program, ProgramRun, RunContext } from './program.ts';
import { simCallerDial } from './sim_callers.ts';
import type { SimProcess } from './sim_process.ts';
import { SimulationError } from './sim_world.ts';
import { sender, SingletonRun } from './singleton_program.ts';
import { showValue } from './values.ts';
import type { WorkMessage } from './workload_actors.ts';

export const callerProgram: Program = {
  name: 'callers',
  drain: 'tracked',
  create: (context) => new CallerRun(context),
};

const token = 'taken-as-given-here';
const grants: readonly CallerGrant[] = [{ name: 'callers', token, singletons: '*' }];
const auditEveryMs = 1_000;
const askTimeoutMs = 4_000;

class CallerRun implements ProgramRun {
  readonly #context: RunContext;
  readonly #inner: SingletonRun;
  readonly #nodes: readonly Address[];
  readonly #callers = new Map<SimProcess, SimCaller>();
  #nextAudit = 0;

  constructor(context: RunContext) {
    this.#context = context;
    const { addresses } = context;
    const callers = addresses.length < 2 ? 0 : Math.max(1, Math.floor(addresses.length / 3));
    this.#nodes = addresses.slice(0, addresses.length - callers);
    this.#inner = new SingletonRun({ ...context, addresses: this.#nodes }, 'count', { callers: grants });
  }

  boot(process: SimProcess): void | Promise<void> {
    if (this.#nodes.includes(process.host.address)) return this.#inner.boot(process);
    const caller = new SimCaller(this.#inner, process, this.#nodes);
    this.#callers.set(process, caller);
    process.onExit(() => this.#callers.delete(process));
  }

  mayLeave(process: SimProcess): boolean {
    return this.#callers.has(process) || this.#inner.mayLeave(process);
  }

  leave(process: SimProcess): Promise<void> {
    const caller = this.#callers.get(process);
    if (caller === undefined) return this.#inner.leave(process);
    this.#inner.leaving.add(sender(process));
    return caller.close();
  }

  call(process: SimProcess, action: string, argument: string): void {
    if (!this.#callers.has(process)) this.#inner.call(process, action, argument);
  }

  check(process: SimProcess | undefined): void {
    if (process === undefined || !this.#callers.has(process)) this.#inner.check(process);
    const { world } = this.#context;
    if (world.now < this.#nextAudit) return;
    this.#nextAudit = world.now + auditEveryMs;
    for (const caller of this.#callers.values()) caller.audit();
  }

  quiesce(): void {
    this.#inner.quiesce();
    for (const caller of this.#callers.values()) caller.stopLoad();
  }

  unsettled(): string | undefined {
    const missing = this.#inner.unsettled();
    if (missing !== undefined) return missing;
    for (const caller of this.#callers.values()) {
      const open = caller.unsettled();
      if (open !== undefined) return open;
    }
    return undefined;
  }

  finish(): void {
    this.#inner.finish();
    for (const [process, caller] of this.#callers) {
      caller.audit();
      const open = caller.unsettled();
      if (open !== undefined) throw new SimulationError('S3', `${process.name}: ${open}`);
    }
  }

  statistics(): Record<string, number> {
    const told = [...this.#callers.values()].reduce((sum, caller) => sum + caller.told, 0);
    const reconnects = [...this.#callers.values()].reduce((sum, caller) => sum + caller.connects - 1, 0);
    return { ...this.#inner.statistics(), toldByCallers: told, reconnects };
  }
}

class SimCaller {
  told = 0;
  connects = 0;
  readonly #run: SingletonRun;
  readonly #process: SimProcess;
  readonly #caller: Caller;
  readonly #random: Prng;
  readonly #timers = new Set<Cancel>();
  #loaded = true;

  constructor(run: SingletonRun, process: SimProcess, nodes: readonly Address[]) {
    this.#run = run;
    this.#process = process;
    this.#random = new Prng(`${process.world.seed}/caller/${sender(process)}`);
    this.#caller = new Caller({
      environment: process.environment,
      urls: this.#random.shuffled(nodes),
      dial: simCallerDial(process, `${callerPrefix}${process.name}-${process.incarnation}`),
      options: { token },
    });
    this.#caller.subscribe((event) => {
      if (event.kind === 'connected') this.connects += 1;
      process.world.record('caller', process.name, event.kind);
    });
    this.#caller.deadLetters.subscribe((letter) => {
      // Late answers end here too.
      const { stream, seq } = letter.message as Partial<WorkMessage>;
      if (typeof stream !== 'string' || typeof seq !== 'number') return;
      process.world.record('dead', process.name, `${stream} ${seq} ${letter.reason}`);
      run.ledger.deadLettered({ stream, seq }, letter.reason);
    });
    this.#caller.start();
    for (const { name } of run.settings.kinds) this.#tellLater(name);
    if (run.quiet) this.stopLoad();
  }

  stopLoad(): void {
    this.#loaded = false;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  close(): Promise<void> {
    this.stopLoad();
    return this.#caller.close();
  }

  audit(): void {
    for (const { name } of this.#run.settings.kinds) {
      this.#run.ledger.audit(streamName(sender(this.#process), name), this.#caller.ledger(name));
    }
  }

  unsettled(): string | undefined {
    const { name } = this.#process;
    if (this.#caller.state !== 'connected') return `caller ${name} is ${this.#caller.state}`;
    for (const kind of this.#run.settings.kinds) {
      const { buffered } = this.#caller.ledger(kind.name);
      if (buffered > 0) return `caller ${name} buffers ${buffered} messages for ${kind.name}`;
    }
    return undefined;
  }

  #tellLater(name: string): void {
    const cancel = this.#process.timers.set(this.#random.between(0, 2 * this.#run.settings.tellEveryMs), () => {
      this.#timers.delete(cancel);
      if (!this.#loaded) return;
      this.#tell(name);
      this.#tellLater(name);
    });
    this.#timers.add(cancel);
  }

  #tell(name: string): void {
    const ask = this.#random.chance(0.1);
    const message: WorkMessage = { ...this.#run.ledger.told(streamName(sender(this.#process), name)), ask };
    this.told += 1;
    const ref = this.#caller.singleton.ref<WorkMessage>(name);
    if (!ask) return ref.tell(message);
    const { world, name: node } = this.#process;
    this.#process.track(ref.ask(message, askTimeoutMs)).then(
      () => world.record('answer', node, `${name} ${message.seq}`),
      (error) => world.record('no answer', node, `${name} ${message.seq} ${showValue(error).slice(0, 80)}`),
    );
  }
}
