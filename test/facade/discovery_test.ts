import { assert, assertEquals, assertInstanceOf, assertRejects, assertStringIncludes } from '@std/assert';
import { describe, test } from 'node:test';
import { OptionsError } from '../../src/actor/options.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { BootstrapError, type DiscoveryOptions, isSettled, nothingSeen, sighted } from '../../src/facade/discovery.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';

class Bench {
  readonly environment = new ManualEnvironment({ seed: 3 });
  readonly network = new MemoryNetwork({ environment: this.environment, delayMs: () => 1 });
  readonly up = new Map<string, Cluster>();
  readonly failed = new Map<string, unknown>();

  start(address: string, discovery: Partial<DiscoveryOptions>, signal?: AbortSignal): void {
    const { environment } = this;
    const system = ActorSystem.create('found', { environment, logger: environment.log });
    const transport = (identity: Parameters<MemoryNetwork['transport']>[0]) =>
      this.network.transport({ ...identity, address });
    const options = { http: false, transport: transport as never, joinTimeoutMs: 120_000 };
    Cluster.bootstrap(system, discovery as DiscoveryOptions, options, signal === undefined ? {} : { signal }).then(
      (cluster) => void this.up.set(address, cluster),
      (error: unknown) => void this.failed.set(address, error),
    );
  }

  async pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += 20) await this.environment.elapse(20);
  }

  get now(): number {
    return this.environment.clock.now();
  }
}

const five = [1, 2, 3, 4, 5].map((n) => `10.0.0.${n}:4000`);

describe('R107: what is looked up', () => {
  const [a, b, c] = five as [string, string, string];

  test('has settled once it was the same for long enough, in whatever order', () => {
    let seen = sighted(nothingSeen, { found: [a, b, c] }, 0);
    seen = sighted(seen, { found: [c, a, b, a] }, 2_000);
    assertEquals([isSettled(seen, 3, 2_000), isSettled(seen, 3, 2_001), isSettled(seen, 4, 0)], [true, false, false]);
    seen = sighted(seen, { found: [a, b] }, 3_000);
    assertEquals([isSettled(seen, 2, 0), isSettled(seen, 2, 1)], [true, false]);
  });

  test('is not forgotten when a lookup fails, and has not settled either', () => {
    const seen = sighted(sighted(nothingSeen, { found: [a, b] }, 0), { failure: 'SERVFAIL' }, 5_000);
    assertEquals([seen.found, seen.failure, isSettled(seen, 2, 0)], [[a, b], 'SERVFAIL', false]);
    const again = sighted(seen, { found: [b, a] }, 6_000);
    assertEquals([again.since, again.failure, isSettled(again, 2, 6_000)], [0, undefined, true]);
    const empty = sighted(again, { found: [] }, 7_000);
    assertEquals([empty.found, isSettled(empty, 1, 0)], [[], false]);
  });

  test('is no list of addresses: like a failed lookup, by name of what is wrong', () => {
    for (const [found, named] of [['x', 'a list'], [['host'], '"host"'], [[7], '7'], [['0.0.0.0:1'], '0.0.0.0']]) {
      const seen = sighted(nothingSeen, { found }, 0);
      assertEquals(seen.found, undefined);
      assertStringIncludes(seen.failure ?? '', named as string);
    }
  });
});

describe('R107: bootstrap', () => {
  test('FB-065: five nodes that see different ones at first form one cluster', async () => {
    const bench = new Bench();
    for (const [at, address] of five.entries()) {
      const lookup = () => bench.now < 5_000 ? [address, five[(at + 1) % 5]!] : at % 2 === 0 ? five : five.toReversed();
      bench.start(address, { lookup, requiredContactPoints: 3 });
    }
    await bench.pass(16_000);
    assertEquals(bench.up.size, 5);
    assertEquals(new Set([...bench.up.values()].map((one) => one.getMembers().length)), new Set([5]));
    assertEquals(new Set([...bench.up.values()].map((one) => one.leader()?.uid)).size, 1);
  });

  test('FB-065: with fewer than are required none forms, and the error names what was found', async () => {
    const bench = new Bench();
    const two = five.slice(0, 2);
    for (const address of two) bench.start(address, { lookup: () => two, requiredContactPoints: 3, timeoutMs: 20_000 });
    await bench.pass(19_000);
    assertEquals([bench.up.size, bench.failed.size], [0, 0]);
    await bench.pass(2_000);
    for (const address of two) {
      const error = bench.failed.get(address);
      assertInstanceOf(error, BootstrapError);
      assertEquals(error.found, two);
      assertStringIncludes(error.message, `3 contact points must be found, found 2; found last: ${two.join(', ')}`);
    }
  });

  test('two halves that each find enough of the same five do not both become clusters', async () => {
    const bench = new Bench();
    for (const left of [0, 1]) for (const right of [3, 4]) bench.network.cut(five[left]!, five[right]!);
    const finds = (at: number) => at < 2 ? five.slice(0, 3) : five.slice(2);
    for (const at of [0, 1, 3, 4]) {
      bench.start(five[at]!, { lookup: () => finds(at), requiredContactPoints: 3 });
    }
    await bench.pass(20_000);
    assertEquals(bench.up.size, 0);
    for (const left of [0, 1]) for (const right of [3, 4]) bench.network.heal(five[left]!, five[right]!);
    bench.start(five[2]!, { lookup: () => five, requiredContactPoints: 3 });
    await bench.pass(20_000);
    // One side has given way before it was up: its processes are told so, and start anew.
    const gone = [...bench.failed.keys()];
    assertEquals([bench.up.size, gone.length], [3, 2]);
    for (const address of gone) {
      assertStringIncludes(String(bench.failed.get(address)), 'lives on');
      bench.start(address, { lookup: () => five, requiredContactPoints: 3 });
    }
    await bench.pass(20_000);
    assertEquals([...bench.up.values()].map((one) => one.upMembers().length), [5, 5, 5, 5, 5]);
  });

  test('a lookup that hangs, fails or keeps changing is given up in time, and says so', async () => {
    const bench = new Bench();
    const timeoutMs = 8_000;
    let turn = 0;
    bench.start('10.0.0.1:4000', { lookup: () => new Promise(() => {}), requiredContactPoints: 1, timeoutMs });
    bench.start('10.0.0.2:4000', {
      lookup: () => Promise.reject(new Error('SERVFAIL')),
      requiredContactPoints: 1,
      timeoutMs,
    });
    bench.start('10.0.0.3:4000', { lookup: () => five.slice(turn++ % 2), requiredContactPoints: 2, timeoutMs });
    await bench.pass(timeoutMs + 100);
    const why = [1, 2, 3].map((n) => String((bench.failed.get(`10.0.0.${n}:4000`) as Error | undefined)?.message));
    assertStringIncludes(why[0]!, 'no lookup has succeeded');
    assertStringIncludes(why[1]!, 'the last lookup: SERVFAIL');
    assertStringIncludes(why[2]!, 'what is found keeps changing');
    assertEquals(bench.environment.timerCount, 0);
  });

  test('can be aborted; bad options are refused by name', async () => {
    const bench = new Bench();
    const abort = new AbortController();
    bench.start(five[0]!, { lookup: () => five, requiredContactPoints: 3 }, abort.signal);
    await bench.pass(1_000);
    abort.abort();
    await bench.pass(20);
    assertInstanceOf(bench.failed.get(five[0]!), BootstrapError);
    const system = ActorSystem.create('bad', { environment: bench.environment, logger: bench.environment.log });
    const bad: [object, string][] = [
      [{}, 'DiscoveryOptions.lookup: must be given'],
      [{ lookup: () => five }, 'DiscoveryOptions.requiredContactPoints: must be given'],
      [{ lookup: five, requiredContactPoints: 1 }, 'DiscoveryOptions.lookup: must be a function'],
      [{ lookup: () => five, requiredContactPoints: 0 }, 'requiredContactPoints: must be a whole number from 1'],
      [{ lookup: () => five, requiredContactPoints: 1, stable: 1 }, 'DiscoveryOptions.stable: is not an option'],
    ];
    for (const [discovery, text] of bad) {
      const error = await assertRejects(() => Cluster.bootstrap(system, discovery as DiscoveryOptions), OptionsError);
      assertStringIncludes(error.message, text);
    }
    const withSeeds = () =>
      Cluster.bootstrap(system, { lookup: () => five, requiredContactPoints: 1 }, { seeds: five });
    assertStringIncludes((await assertRejects(withSeeds, OptionsError)).message, 'ClusterOptions.seeds');
    assert(!system.extensions.has('cluster'));
  });
});
