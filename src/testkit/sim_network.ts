/**
 * The network between simulated hosts: paths with delays, cuts (packets vanish; links hold what TCP would repeat), hung
 * and reset connections, and what a kernel does for a process: accepting, refusing, resetting.
 */
import type { Address, LinkClose } from '../transport/contract.ts';
import { Prng } from './prng.ts';
import { SimConnection, type SimEnd } from './sim_connection.ts';
import type { SimHost } from './sim_host.ts';
import { type DelayProfile, delayProfiles, SimPath } from './sim_path.ts';
import type { ExitKind, SimProcess } from './sim_process.ts';
import type { SimTransport } from './sim_transport.ts';
import type { World } from './sim_world.ts';

/** Options of a simulated network. */
export interface NetworkOptions {
  /** Default: `lan`. */
  readonly delays: DelayProfile;
}

/** What happens to connections when a cut heals: held data comes through, or the connection is found dead, or either. */
export type HealMode = 'deliver' | 'reset' | 'mixed';

export class SimNetwork {
  readonly world: World;
  readonly options: NetworkOptions;
  /** Formats a frame for the trace. */
  describeFrame: (bytes: Uint8Array) => string = (bytes) => `${bytes.length} bytes`;
  /** Sees every frame that arrives: for counting. */
  onFrame: ((bytes: Uint8Array) => void) | undefined;
  /** Grows with each `mendAll`: cuts planned before it neither begin nor end after it. */
  healEpoch = 0;
  /** One-way paths that no packet passes at present. */
  cutPaths = 0;
  #paths: SimPath[][] = [];
  #hosts = new Map<Address, SimHost>();
  #listeners = new Map<Address, SimTransport>();
  #ends = new Set<SimEnd>();
  #connections = 0;
  #random: Prng;

  constructor(world: World, options: Partial<NetworkOptions>) {
    this.world = world;
    this.#random = new Prng(`${world.seed}/network`);
    this.options = { delays: options.delays ?? delayProfiles.lan };
  }

  addHost(host: SimHost): void {
    if (this.#hosts.has(host.address)) throw new RangeError(`World.addHost: address ${host.address} is taken`);
    this.#hosts.set(host.address, host);
    this.#paths.push([]);
    for (let other = 0; other <= host.index; other++) {
      for (const [from, to] of [[other, host.index], [host.index, other]] as const) {
        const random = new Prng(`${this.world.seed}/path/${from}/${to}`);
        (this.#paths[from] as SimPath[])[to] = new SimPath(from, to, this.options.delays, random);
      }
    }
  }

  path(from: SimHost, to: SimHost): SimPath {
    return (this.#paths[from.index] as SimPath[])[to.index] as SimPath;
  }

  hostAt(address: Address): SimHost | undefined {
    return this.#hosts.get(address);
  }

  /** Stops packets one way. Each cut needs its own `mend`. */
  cut(from: SimHost, to: SimHost): void {
    const path = this.path(from, to);
    if (path.cuts++ > 0) return;
    path.cutSince = this.world.now;
    this.cutPaths++;
  }

  mend(from: SimHost, to: SimHost, mode: HealMode): void {
    const path = this.path(from, to);
    if (path.cuts === 0 || --path.cuts > 0) return;
    this.cutPaths--;
    const outage = this.world.now - path.cutSince;
    for (const end of [...this.#ends]) {
      if (end.out !== path) continue;
      const reset = mode === 'reset' || (mode === 'mixed' && path.chance(0.5));
      if (reset && end.held.length > 0) this.resetConnection(end);
      else end.release(path.between(0, Math.min(outage, 1_500)));
    }
  }

  /** Mends every path and restores its speed. */
  mendAll(mode: HealMode): void {
    this.healEpoch++;
    for (const from of this.world.hosts) {
      for (const to of this.world.hosts) {
        const path = this.path(from, to);
        path.slowness = 1;
        if (path.cuts > 1) path.cuts = 1;
        this.mend(from, to, mode);
      }
    }
  }

  /** Kills a connection; what is in flight is lost and both sides learn it, each after its own delay. */
  resetConnection(end: SimEnd): void {
    const other = end.other;
    for (const side of other === undefined ? [end] : [end, other]) {
      side.generation++;
      side.held = [];
      this.#in(side.out.delay(), side.process, () => side.reset('connection reset'));
    }
  }

  /** The open connections between two hosts, one end of each (on `a`). */
  connectionsBetween(a: SimHost, b: SimHost): SimEnd[] {
    return [...this.#ends].filter((end) => end.process.host === a && end.other?.process.host === b);
  }

  /** Resets every connection of a host, and refuses new ones to it for `forMs`. */
  refuse(host: SimHost, forMs: number): void {
    host.refusesUntil = Math.max(host.refusesUntil, this.world.now + forMs);
    for (const end of [...this.#ends]) if (end.process.host === host) this.resetConnection(end);
  }

  newConnection(): SimConnection {
    return new SimConnection(this, this.#connections++, this.#random.chance(0.5));
  }

  remember(end: SimEnd): void {
    this.#ends.add(end);
  }

  /** Called by an end that is closed; held items (a close, above all) still go out after a heal. */
  forget(end: SimEnd): void {
    if (end.held.length === 0) this.#ends.delete(end);
  }

  observed(from: SimEnd, bytes: Uint8Array): void {
    const trace = this.world.trace;
    trace.mixBytes(bytes);
    this.onFrame?.(bytes);
    const node = from.process.name;
    const to = from.other?.process.name ?? '?';
    trace.show(this.world.now, to, 'frame', () => `from ${node}: ${this.describeFrame(bytes)}`);
  }

  /** `from` (the unknown end's kernel) answers a packet with a reset. */
  resetLater(end: SimEnd, from: SimEnd, reason: string): void {
    if (!from.out.open) return;
    this.#in(from.out.delay(), end.process, () => end.reset(reason));
  }

  listen(transport: SimTransport): boolean {
    const present = this.#listeners.get(transport.process.host.address);
    if (present !== undefined) return false;
    this.#listeners.set(transport.process.host.address, transport);
    return true;
  }

  unlisten(transport: SimTransport): void {
    const address = transport.process.host.address;
    if (this.#listeners.get(address) === transport) this.#listeners.delete(address);
  }

  listener(address: Address): SimTransport | undefined {
    return this.#listeners.get(address);
  }

  /** The listener of a running process dies under it. False when there is none. */
  loseListener(host: SimHost): boolean {
    const transport = this.#listeners.get(host.address);
    if (transport === undefined) return false;
    this.#listeners.delete(host.address);
    transport.listenerDied();
    return true;
  }

  processEnded(process: SimProcess, how: ExitKind): void {
    const listener = this.#listeners.get(process.host.address);
    if (listener?.process === process) this.#listeners.delete(process.host.address);
    if (how === 'power') process.host.machineUp = false;
    for (const end of [...this.#ends]) {
      if (end.process !== process) {
        if (end.awaits === process && how !== 'power') this.resetLater(end, end, 'the process ended');
        continue;
      }
      end.state = 'closed';
      if (how === 'power') {
        end.generation++;
      } else {
        if (end.out.chance(0.3)) end.generation++;
        end.transmit({ kind: 'close', close: closedByKernel });
      }
      this.forget(end);
    }
  }

  /**
   * A connection attempt reaches the kernel at `address`, or does not. Answers after the round trip; never, when a path
   * is cut or the machine is silent (the caller has a timer of its own).
   */
  knock(
    from: SimProcess,
    address: Address,
    answer: (outcome: 'open' | 'refused', listener?: SimTransport) => void,
  ): void {
    const target = this.#hosts.get(address);
    if (target === undefined) {
      this.#in(0.1, from, () => answer('refused'));
      return;
    }
    const there = this.path(from.host, target);
    const back = this.path(target, from.host);
    this.world.at(this.world.now + there.delay(), () => {
      if (!there.open || !back.open || !target.machineUp) return;
      const listener = this.world.now < target.refusesUntil ? undefined : this.#listeners.get(address);
      this.#in(back.delay(), from, () => answer(listener === undefined ? 'refused' : 'open', listener));
    });
  }

  /** A one-off message between processes outside any link (a handshake, an HTTP request); lost in a cut. */
  carry(from: SimProcess, to: SimProcess, run: () => void): void {
    const path = this.path(from.host, to.host);
    const event = this.world.schedule(this.world.now + path.delay(), to, 'io', run);
    event.admit = () => path.open && to.host.machineUp;
  }

  #in(delayMs: number, process: SimProcess, run: () => void): void {
    this.world.schedule(this.world.now + delayMs, process, 'io', run);
  }
}

const closedByKernel: LinkClose = { code: 1006, reason: 'the process at the other side ended', clean: false };
