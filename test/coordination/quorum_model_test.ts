import { test } from 'node:test';
import { assert, assertEquals, assertGreater } from '@std/assert';
import { majorityOf } from '../../src/coordination/quorum_voter.ts';
import { type QuorumHost, QuorumWorld, type WorldOptions } from './quorum_world.ts';

interface History {
  readonly grants: {
    readonly token: number;
    readonly previous: number | undefined;
    readonly by: string;
    readonly at: number;
  }[];
  restarts: number;
  pauses: number;
  /** Grants before this one were forgotten by a majority of the voters. */
  rememberedFrom: number;
  violation: string | undefined;
}

const ttlMs = 2_000;

/** Wants the lease, keeps it for a while, gives it back, again and again. */
function live(world: QuorumWorld, host: QuorumHost, history: History): void {
  const later = (ms: number, run: () => void) => world.at(world.now + ms, host, run);
  const again = () => later(50 + world.random() * 400, () => live(world, host, history));
  host.lease.acquireWithToken().then((grant) => {
    if (!host.alive) return;
    if (grant === false) return again();
    history.grants.push({ ...grant, previous: grant.previous, by: host.address, at: world.now });
    later(world.random() * 3 * ttlMs, () => {
      if (world.random() < 0.3) host.lease.abandon();
      else host.lease.release().catch(() => {});
      again();
    });
  }, again);
}

function disturb(world: QuorumWorld, history: History): void {
  const pick = () => world.addresses[Math.floor(world.random() * world.addresses.length)]!;
  const what = world.random();
  const address = pick();
  if (what < 0.25) {
    history.restarts += 1;
    world.crash(address);
    world.at(world.now + world.random() * 2_000, undefined, () => {
      if (!world.hosts.has(address)) start(world, address, history);
    });
  } else if (what < 0.45) {
    history.pauses += 1;
    world.hosts.get(address)?.pause(world.random() * 2.5 * ttlMs, world.random() < 0.5);
  } else if (what < 0.7) {
    for (const other of world.addresses) {
      if (world.random() < 0.7) world.cuts.add(`${address} ${other}`);
      if (world.random() < 0.7) world.cuts.add(`${other} ${address}`);
    }
  } else {
    world.cuts.clear();
  }
}

function start(world: QuorumWorld, address: string, history: History): void {
  const host = world.hosts.get(address) ?? world.boot(address);
  if (world.clients.includes(address)) world.at(world.now, host, () => live(world, host, history));
}

function check(world: QuorumWorld, history: History): void {
  const holders = [...world.hosts.values()].filter((host) => host.running && host.lease.checkAlive());
  if (holders.length > 1) {
    const who = holders.map((host) => `${host.address} (token ${host.lease.token})`).join(' and ');
    history.violation ??= `at ${Math.round(world.now)}: ${who} hold it`;
  }
  const knowing = world.voters.filter((address) => world.hosts.get(address)?.arbiter.voter?.knows).length;
  const { length } = world.voters;
  // With clocks that agree tokens grow even then.
  const forgotten = knowing < length - majorityOf(length) + 1 && world.options.wallSpreadMs !== 0;
  if (forgotten) history.rememberedFrom = history.grants.length;
  const [before, last] = history.grants.slice(history.rememberedFrom).slice(-2);
  if (last && before && last.token <= before.token) {
    history.violation ??= `at ${Math.round(world.now)}: token ${last.token} after ${before.token}`;
  }
  // What is told of the tenure before must not name one that was followed by another.
  if (last?.previous !== undefined && before && last.previous < before.token) {
    history.violation ??= `at ${Math.round(world.now)}: the tenure before is ${before.token}, not ${last.previous}`;
  }
}

async function run(options: WorldOptions, ms: number): Promise<{ world: QuorumWorld; history: History }> {
  const world = new QuorumWorld(options);
  const history: History = { grants: [], restarts: 0, pauses: 0, rememberedFrom: 0, violation: undefined };
  for (const address of world.addresses) start(world, address, history);
  const until = world.now + ms;
  const plan = (): void => {
    if (world.calm) return;
    disturb(world, history);
    if (world.now < until) world.at(world.now + 200 + world.random() * 2_500, undefined, plan);
  };
  world.at(4_000, undefined, plan);
  await world.runUntil(until, () => check(world, history));
  return { world, history };
}

const sizes = [1, 2, 3, 3, 3, 4, 5];
const optionsFor = (seed: number): WorldOptions => ({
  seed,
  voters: sizes[seed % sizes.length]!,
  clients: 3,
  ttlMs,
  maxTtlMs: 2_500,
  driftBound: 0.02,
  wallSpreadMs: seed % 2 === 0 ? 0 : 3_600_000,
});

test('S1: never two holders and tokens that only grow, over 150 histories of loss, drift, pauses and restarts', async () => {
  let grants = 0;
  let restarts = 0;
  let known = 0;
  for (let seed = 1; seed <= 150; seed += 1) {
    const { history } = await run(optionsFor(seed), 30_000);
    assertEquals(history.violation, undefined, `seed ${seed}`);
    grants += history.grants.length;
    restarts += history.restarts;
    known += history.grants.filter(({ previous }) => previous !== undefined).length;
  }
  assertGreater(grants, 300);
  assertGreater(restarts, 300);
  assertGreater(known, 60);
});

test('the check finds what it is for: clocks further apart than the bound give two holders', async () => {
  let found = 0;
  for (let seed = 1; seed <= 60 && found === 0; seed += 1) {
    const { history } = await run({ ...optionsFor(seed), voters: 3, drift: 1.2, driftBound: 0.001 }, 30_000);
    if (history.violation !== undefined) found += 1;
  }
  assertEquals(found, 1);
});

test('after all faults one holds it again, within a term and the time a voter waits', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const { world, history } = await run(optionsFor(seed), 20_000);
    world.cuts.clear();
    world.calm = true;
    for (const address of world.addresses) if (!world.hosts.has(address)) start(world, address, history);
    const before = history.grants.length;
    await world.runUntil(world.now + 15_000, () => check(world, history));
    assertEquals(history.violation, undefined, `seed ${seed}`);
    assert(history.grants.length > before, `seed ${seed}: nobody was granted anything`);
  }
});
