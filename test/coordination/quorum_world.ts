/** Hosts with clocks of their own on a network that loses, doubles, delays and cuts; one seed is one history. */
import type { Cancel, Environment } from '../../src/actor/environment.ts';
import { LevelLogger } from '../../src/actor/logger.ts';
import { QuorumArbiter } from '../../src/coordination/quorum_arbiter.ts';
import { QuorumLease } from '../../src/coordination/quorum_lease.ts';
import type { Envelope } from '../../src/coordination/quorum_messages.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly voters: number;
  readonly clients: number;
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  /** What the leases are told. */
  readonly driftBound: number;
  /** How far the clocks really are apart. Default: the bound. */
  readonly drift?: number;
  /** Shares of messages lost and doubled. */
  readonly loss?: number;
  readonly wallSpreadMs?: number;
}

interface Task {
  readonly at: number;
  readonly order: number;
  readonly host: QuorumHost | undefined;
  readonly run: () => void;
}

type Handler = (peer: { address: string; uid: string }, envelope: Envelope) => void;

export class QuorumHost {
  readonly environment: Environment;
  readonly address: string;
  readonly uid: string;
  readonly arbiter: QuorumArbiter;
  readonly lease: QuorumLease;
  alive = true;
  pausedUntil = 0;
  readonly handlers = new Map<number, Handler>();
  readonly #world: QuorumWorld;
  /** Time that the monotonic clock did not count. */
  #slept = 0;

  constructor(world: QuorumWorld, address: string, uid: string, rate: number, wallOffset: number) {
    this.#world = world;
    this.address = address;
    this.uid = uid;
    const bootedAt = world.now;
    // A wall clock that goes as wrong as the monotonic one: nothing shows the drift.
    const blind = world.options.drift !== undefined;
    this.environment = {
      clock: {
        now: () => (world.now - bootedAt - this.#slept) * rate + 1,
        wall: () => (blind ? world.now * rate : world.now) + wallOffset + 1_700_000_000_000,
      },
      timers: {
        set: (ms, run) => {
          let live = true;
          world.at(world.now + Math.max(0, ms) / rate, this, () => live && run());
          return () => void (live = false);
        },
      },
      turns: { schedule: (run) => world.at(world.now, this, run) },
      random: { next: () => world.random() },
      log: new LevelLogger('off', () => {}),
    };
    this.arbiter = new QuorumArbiter(this, {
      voters: world.voters,
      maxTtlMs: world.options.maxTtlMs,
      driftBound: world.options.driftBound,
    });
    const { ttlMs, driftBound } = world.options;
    this.lease = new QuorumLease(this.arbiter, { name: 'x', ttlMs, driftBound });
  }

  get running(): boolean {
    return this.alive && this.pausedUntil <= this.#world.now;
  }

  onMessage(code: number, handler: Handler): Cancel {
    this.handlers.set(code, handler);
    return () => void this.handlers.delete(code);
  }

  sendSystem(address: string, envelope: Envelope): void {
    if (this.alive) this.#world.send(this, address, envelope);
  }

  /** Stands still; `deep`: the monotonic clock does too, as in a suspend. */
  pause(ms: number, deep: boolean): void {
    this.pausedUntil = this.#world.now + ms;
    if (deep) this.#slept += ms;
  }
}

export class QuorumWorld {
  now = 0;
  readonly options: WorldOptions;
  readonly voters: readonly string[];
  readonly hosts = new Map<string, QuorumHost>();
  readonly random: () => number;
  /** Pairs `a b` that cannot talk, in this direction. */
  readonly cuts = new Set<string>();
  calm = false;
  #tasks: Task[] = [];
  #order = 0;
  #boots = 0;

  constructor(options: WorldOptions) {
    this.options = options;
    const random = seededRandom(options.seed);
    for (let warm = 0; warm < 5; warm += 1) random.next();
    this.random = () => random.next();
    this.voters = Array.from({ length: options.voters }, (_, at) => `v${at}:1`);
    for (const address of this.addresses) this.boot(address);
  }

  /** Voters first; clients are the first voters and, if there are more, hosts that do not vote. */
  get addresses(): readonly string[] {
    const { voters, clients } = this.options;
    return [...this.voters, ...Array.from({ length: Math.max(0, clients - voters) }, (_, at) => `c${at}:1`)];
  }

  get clients(): readonly string[] {
    return [...this.addresses].reverse().slice(0, this.options.clients);
  }

  boot(address: string): QuorumHost {
    const { driftBound, drift = driftBound, wallSpreadMs = 0 } = this.options;
    const rate = 1 + drift * (this.random() - 0.5);
    const wallOffset = Math.round(wallSpreadMs * (this.random() - 0.5));
    const host = new QuorumHost(this, address, `u${this.#boots += 1}`, rate, wallOffset);
    this.hosts.set(address, host);
    return host;
  }

  crash(address: string): void {
    const host = this.hosts.get(address);
    if (!host) return;
    host.alive = false;
    this.hosts.delete(address);
  }

  at(time: number, host: QuorumHost | undefined, run: () => void): void {
    const task = { at: Math.max(time, this.now), order: this.#order += 1, host, run };
    let low = 0;
    let high = this.#tasks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#tasks[middle]!.at <= task.at) low = middle + 1;
      else high = middle;
    }
    this.#tasks.splice(low, 0, task);
  }

  send(from: QuorumHost, to: string, envelope: Envelope): void {
    const { loss = 0.1 } = this.options;
    const share = this.calm ? 0 : loss;
    const copies = this.random() < share ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      if (this.random() < share) continue;
      const delay = this.calm
        ? 2
        : this.random() < 0.03
        ? this.random() * 3 * this.options.ttlMs
        : 1 + this.random() * 80;
      this.at(this.now + delay, undefined, () => this.#arrive(from, to, envelope));
    }
  }

  #arrive(from: QuorumHost, to: string, envelope: Envelope): void {
    const host = this.hosts.get(to);
    if (!host || this.cuts.has(`${from.address} ${to}`)) return;
    if (host.pausedUntil > this.now) {
      return this.at(host.pausedUntil, undefined, () => this.#arrive(from, to, envelope));
    }
    host.handlers.get(envelope[0])?.({ address: from.address, uid: from.uid }, envelope);
  }

  /** Runs until `time`; `check` after each step. */
  async runUntil(time: number, check: () => void): Promise<void> {
    for (let task = this.#tasks[0]; task !== undefined && task.at <= time; task = this.#tasks[0]) {
      this.#tasks.shift();
      this.now = task.at;
      const { host } = task;
      if (host && !host.alive) continue;
      if (host && host.pausedUntil > this.now) {
        this.at(host.pausedUntil, host, task.run);
        continue;
      }
      task.run();
      for (let round = 0; round < 12; round += 1) await Promise.resolve();
      check();
    }
    this.now = time;
  }
}
