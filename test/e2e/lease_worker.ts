/**
 * A node for the lease tests: starts a singleton with a lease, loads it, prints one JSON line for everything that happens
 * to its instance, and writes each message to a fenced store. Its only argument is its settings as JSON.
 */
import type { Hono } from 'hono';
import { runtime } from '#runtime';
import { Actor } from '../../src/actor/actor.ts';
import { createPostgresSchema, postgresJs, PostgresLease } from '../../adapters/postgres/mod.ts';
import { EtcdLease, type LeaseFactory, QuorumLease } from '../../src/coordination/mod.ts';
import { Cluster, type DowningOption, LeaseMajority, SingletonKey } from '../../src/facade/mod.ts';
import { type ActorRef, ActorSystem, consoleLogger, realEnvironment } from '../../src/mod.ts';

export interface WorkerSettings {
  readonly port: number;
  readonly seeds: readonly string[];
  readonly voters: readonly string[];
  readonly ttlMs: number;
  /** How far this node's wall clock is off. */
  readonly wallOffsetMs: number;
  /** Where others reach it, if not at its own port. */
  readonly advertisedPort?: number;
  /** An endpoint: the lease is etcd's. Without one, and without `postgres`, it is the voters'. */
  readonly etcd?: string;
  /** A URL: the lease is PostgreSQL's. */
  readonly postgres?: string;
  /** Of names in etcd and PostgreSQL. */
  readonly prefix: string;
  /** Splits are decided by etcd. */
  readonly leaseMajority?: boolean;
  /** Base URL of the fenced store. */
  readonly store: string;
}

export type WorkerLine =
  | { readonly kind: 'listening'; readonly address: string; readonly uid: string; readonly url: string }
  /** Wall-clock milliseconds, the same clock for all processes of this machine. */
  | {
    readonly kind: 'born' | 'handled' | 'ended';
    readonly token: number;
    readonly at: number;
  }
  /** The handler that was held goes on: what the fence says, and the answer of the store to its late write. */
  | { readonly kind: 'late'; readonly token: number; readonly fence: string; readonly status: number };

export type Work = { readonly kind: 'work' } | { readonly kind: 'hold' };

const settings = JSON.parse(runtime.args()[0] ?? '{}') as WorkerSettings;
const loadEveryMs = 50;
const handOverTimeoutMs = 13_000;

function print(line: WorkerLine): void {
  console.log(JSON.stringify(line));
}

/** The status: 200, or 409 for a token below one that was seen. */
async function write(token: number): Promise<number> {
  const response = await fetch(`${settings.store}/write`, { method: 'POST', body: JSON.stringify({ token }) });
  await response.body?.cancel();
  return response.status;
}

class Leased extends Actor<Work> {
  static readonly singleton: SingletonKey<Work> = SingletonKey.of('leased');

  override preStart(): void {
    print({ kind: 'born', token: this.context.epoch, at: Date.now() });
  }

  override async onReceive(message: Work): Promise<void> {
    print({ kind: 'handled', token: this.context.epoch, at: Date.now() });
    const token = this.context.fence();
    if (message.kind === 'hold') {
      const gate = await fetch(`${settings.store}/gate`);
      await gate.body?.cancel();
      print({ kind: 'late', token, fence: this.#fence(), status: await write(token) });
    } else {
      await write(token);
    }
  }

  override postStop(): void {
    print({ kind: 'ended', token: this.context.epoch, at: Date.now() });
  }

  #fence(): string {
    try {
      return String(this.context.fence());
    } catch (error) {
      return (error as Error).name;
    }
  }
}

const { ttlMs, etcd, postgres, prefix, advertisedPort } = settings;

async function leaseOf(): Promise<LeaseFactory> {
  if (etcd !== undefined) return EtcdLease.factory({ ttlMs, endpoints: [etcd], prefix });
  if (postgres === undefined) return QuorumLease.factory({ ttlMs });
  const packageName = 'postgres';
  const { default: connect } = await import(packageName);
  const query = postgresJs(connect(postgres, { max: 2, onnotice: () => {} }));
  await createPostgresSchema(query, prefix);
  return PostgresLease.factory(query, { ttlMs, prefix });
}

function downing(): DowningOption {
  if (settings.leaseMajority !== true || etcd === undefined) return 'keep-majority';
  const lease = EtcdLease.factory({ endpoints: [etcd], prefix });
  return new LeaseMajority({ lease, minorityDelayMs: 1_000, acquireTimeoutMs: 2_000 });
}

const found: { ref?: ActorRef<Work> } = {};
const real = realEnvironment(consoleLogger('info'));
const clock = { now: () => real.clock.now(), wall: () => real.clock.wall() + settings.wallOffsetMs };
const system = ActorSystem.create('leases', { environment: { ...real, clock }, logger: real.log });
const cluster = await Cluster.join(system, {
  port: settings.port,
  seeds: settings.seeds,
  leaseVoters: settings.voters,
  leaseMaxTtlMs: settings.ttlMs,
  downing: downing(),
  ...(advertisedPort === undefined ? {} : { advertisedPort }),
  ...(settings.leaseMajority === true ? { stableAfterMs: 1_000 } : {}),
  // A handler that was frozen half-way is given this long after waking; hand-overs must then be allowed longer as well.
  stopBoundMs: 2_000,
  handOverTimeoutMs,
  http: (app) => {
    (app as Hono).post('/hold', (context) => {
      found.ref?.tell({ kind: 'hold' });
      return context.text('', 202);
    });
  },
}, {
  onListening: ({ address, uid }) =>
    print({ kind: 'listening', address, uid, url: `http://127.0.0.1:${settings.port}/` }),
});
const ref = cluster.singleton.start(Leased, { lease: await leaseOf(), handOverTimeoutMs });
found.ref = ref;
const load = (): void => {
  ref.tell({ kind: 'work' });
  setTimeout(load, loadEveryMs);
};
load();
await cluster.whenEnded;
runtime.exit(1);
