import { describe, test } from 'node:test';
import { assert, assertEquals, assertGreater } from '@std/assert';
import { DurableJobScheduler } from '../../node/durable_job_scheduler.ts';
import type { JobBody } from '../../node/job_call.ts';
import type { JobCommand, JobReply } from '../../node/job_messages.ts';
import { JobScheduler, jobSchedulerOptions } from '../../node/job_scheduler.ts';
import { type ActorRef, ActorSystem } from '../../src/mod.ts';
import { limits } from '../../src/limits.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';
import { Disk } from './job_stores_fixture.ts';

const url = 'http://127.0.0.1:9000/hook';
const persistenceId = 'jobs-test';

class Targets {
  readonly bodies: JobBody[] = [];
  /** How long a target takes. */
  tookMs = 0;
  readonly #environment: ManualEnvironment;

  constructor(environment: ManualEnvironment) {
    this.#environment = environment;
  }

  readonly fetch = (_url: string, init: RequestInit): Promise<Response> => {
    this.bodies.push(JSON.parse(init.body as string));
    const answer = () => new Response(null, { status: 204 });
    if (this.tookMs === 0) return Promise.resolve(answer());
    return new Promise((resolve) => void this.#environment.timers.set(this.tookMs, () => resolve(answer())));
  };

  runs(): string[] {
    return this.bodies.map(({ id, run }) => `${id}#${run}`);
  }
}

/** A scheduler in a system of its own, on a virtual clock. */
class World {
  readonly environment = new ManualEnvironment({ seed: 3 });
  readonly disk: Disk;
  readonly targets = new Targets(this.environment);
  system!: ActorSystem;
  scheduler!: ActorRef<JobCommand>;

  constructor(disk = new Disk()) {
    this.disk = disk;
  }

  start(): void {
    const { fetch } = this.targets;
    this.system = ActorSystem.create('test', { environment: this.environment, logger: this.environment.log });
    this.scheduler = this.system.spawn(
      () => new DurableJobScheduler({ host: '127.0.0.1:1', persistenceId, open: this.disk.open, fetch }),
      'scheduler',
    );
  }

  async pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += 5) await this.environment.elapse(5);
  }

  async stop(): Promise<void> {
    const ended = this.system.terminate();
    await this.pass(4_000);
    await ended;
  }

  async ask(command: JobCommand): Promise<JobReply> {
    let reply: JobReply | undefined;
    this.scheduler.ask<JobReply>(command).then((value) => reply = value);
    for (let turns = 0; reply === undefined && turns < 100; turns++) await this.environment.elapse(1);
    assert(reply !== undefined);
    return reply;
  }

  errors(): readonly string[] {
    return this.environment.logged.filter((entry) => entry.level === 'error').map((entry) => entry.message);
  }
}

describe('durable job scheduler', () => {
  test('keeps a job before it answers, and the beginning of a run before it calls', async () => {
    const world = new World();
    world.start();
    const put = await world.ask({ kind: 'put', job: { id: 'tick', url, everyMs: 100 } });
    assert(put.kind === 'job' && put.change === 'created');
    assertEquals(world.disk.appends, 1);
    world.disk.fault = 'append';
    await world.pass(300);
    assertEquals(world.targets.bodies, []);
    world.disk.fault = undefined;
    await world.pass(1_000);
    assertGreater(world.targets.bodies.length, 3);
    assertEquals(world.targets.runs(), world.targets.bodies.map((_, index) => `tick#${index + 1}`));
  });

  test('a store that fails: one line, then seldom, a clear answer, reads go on, and it tries again ever less often', async () => {
    const world = new World();
    world.disk.fault = 'open';
    world.start();
    await world.pass(20);
    const reply = await world.ask({ kind: 'list' });
    assert(reply.kind === 'unavailable' && reply.why.includes('EACCES'), JSON.stringify(reply));
    await world.pass(60_000);
    const errors = world.errors();
    assertEquals(errors.length, 1);
    assert(errors[0]!.includes('EACCES') && !errors[0]!.includes('\n'), errors[0]);
    for (let gone = 60_000; gone < 605_000; gone += 1_000) await world.environment.elapse(1_000);
    assertEquals(world.errors().length, 2);
    world.disk.fault = undefined;
    await world.pass(limits.jobStoreRetryMs + 100);
    assertEquals((await world.ask({ kind: 'put', job: { id: 'a', url, everyMs: 100 } })).kind, 'job');

    world.disk.fault = 'append';
    const refused = await world.ask({ kind: 'put', job: { id: 'b', url, everyMs: 100 } });
    assert(refused.kind === 'unavailable' && refused.why.includes('ENOSPC'), JSON.stringify(refused));
    assertEquals((await world.ask({ kind: 'delete', id: 'a' })).kind, 'unavailable');
    assertEquals((await world.ask({ kind: 'get', id: 'a' })).kind, 'job');
    world.disk.fault = undefined;
    await world.pass(limits.jobStoreRetryMs + 500);
    const again = await world.ask({ kind: 'put', job: { id: 'b', url, everyMs: 100 } });
    assert(again.kind === 'job' && again.change === 'unchanged', JSON.stringify(again));
    assert(world.targets.runs().includes('b#1'));
  });

  test('a store that is removed under its host: one line says what it has lost, and the jobs are written to it again', async () => {
    const world = new World();
    const ids = async () => {
      const reply = await world.ask({ kind: 'list' });
      assert(reply.kind === 'page', JSON.stringify(reply));
      return reply.jobs.map(({ id }) => id);
    };
    const at = world.environment.clock.wall() + 3_600_000;
    world.start();
    for (const id of ['a', 'b', 'gone']) await world.ask({ kind: 'put', job: { id, url, at } });
    await world.ask({ kind: 'delete', id: 'gone' });
    world.disk.remove();
    assertEquals((await world.ask({ kind: 'put', job: { id: 'c', url, at } })).kind, 'unavailable');
    await world.pass(200);
    const lost = world.errors().filter((line) => line.includes('lost'));
    assertEquals(lost, [
      '[/user/scheduler] the store has lost 2 jobs: it is empty, and 4 events were acknowledged; the 3 jobs of this host are written to it as ' +
      'its new beginning',
    ]);
    assertEquals((await world.ask({ kind: 'put', job: { id: 'd', url, at } })).kind, 'job');
    await world.stop();
    world.start();
    await world.pass(20);
    assertEquals(await ids(), ['a', 'b', 'c', 'd']);
    world.disk.remove();
    await world.stop();
    world.start();
    await world.pass(20);
    assertEquals(world.errors().filter((line) => line.includes('not recorded')), []);
  });

  test('a store that is replaced by an older one stays as it is: one line says so, and none that runs are made again', async () => {
    const [world, older] = [new World(), new World()];
    for (const { environment } of [world, older]) await environment.elapse(1);
    older.start();
    await older.ask({ kind: 'put', job: { id: 'old', url, everyMs: 3_600_000 } });
    await older.stop();
    world.start();
    for (const id of ['old', 'b', 'c']) await world.ask({ kind: 'put', job: { id, url, everyMs: 3_600_000 } });
    world.disk.remove();
    world.disk.journal = older.disk.journal;
    assertEquals((await world.ask({ kind: 'put', job: { id: 'd', url, everyMs: 3_600_000 } })).kind, 'unavailable');
    await world.pass(500);
    const lost = world.errors().filter((line) => line.includes('lost'));
    assertEquals(lost.length, 1, String(world.errors()));
    assert(lost[0]!.includes('it ends with event 1, and 3 were acknowledged'), lost[0]);
    assertEquals(world.errors().filter((line) => line.includes('not recorded')), []);
    await world.stop();
    world.start();
    const reply = await world.ask({ kind: 'list' });
    assert(reply.kind === 'page', JSON.stringify(reply));
    assertEquals(reply.jobs.map(({ id }) => id), ['old']);
  });

  test('a run that ends while the store fails is recorded later, and not made again', async () => {
    const world = new World();
    world.start();
    world.targets.tookMs = 50;
    await world.ask({ kind: 'put', job: { id: 'once', url, at: world.environment.clock.wall() + 100 } });
    await world.pass(110);
    assertEquals(world.targets.runs(), ['once#1']);
    world.disk.fault = 'append-after-write';
    await world.pass(1_000);
    world.disk.fault = undefined;
    await world.pass(limits.jobStoreRetryMs);
    await world.stop();
    assertEquals(world.disk.users, 0);
    world.start();
    await world.pass(500);
    assertEquals(world.targets.runs(), ['once#1']);
    const reply = await world.ask({ kind: 'get', id: 'once' });
    assert(reply.kind === 'job' && reply.job.lastStatus === 204 && reply.job.runs === 1);
  });

  test('a run that ends during a write is counted right after it', async () => {
    const world = new World();
    world.start();
    world.targets.tookMs = 50;
    await world.ask({ kind: 'put', job: { id: 'once', url, at: world.environment.clock.wall() + 100 } });
    await world.pass(110);
    const written = Promise.withResolvers<void>();
    world.disk.slow = written.promise;
    const late = world.scheduler.ask({ kind: 'put', job: { id: 'later', url, everyMs: 3_600_000 } });
    await world.pass(200);
    world.disk.slow = undefined;
    written.resolve();
    await world.pass(20);
    await late;
    const reply = await world.ask({ kind: 'get', id: 'once' });
    assert(reply.kind === 'job' && reply.job.lastStatus === 204, JSON.stringify(reply));
  });

  test('stopped in the middle of a failure, it gives the stores back, and its successor makes the run it had begun', async () => {
    const world = new World();
    world.start();
    await world.ask({ kind: 'put', job: { id: 'tick', url, everyMs: 100 } });
    world.disk.fault = 'append';
    await world.pass(150);
    await world.stop();
    assertEquals([world.disk.users, world.targets.bodies.length], [0, 0]);
    world.disk.fault = undefined;
    world.start();
    await world.pass(300);
    assertEquals(world.targets.runs().slice(0, 2), ['tick#1', 'tick#2']);
  });

  test('nonsense is refused', async () => {
    const world = new World();
    world.start();
    assertEquals((await world.ask({ kind: 'nonsense' } as unknown as JobCommand)).kind, 'refused');
    assertEquals((await world.ask(null as unknown as JobCommand)).kind, 'refused');
  });
});

/** Nodes of one cluster that share one disk. */
async function clustered(size: number, durable: (index: number) => boolean = () => true) {
  const cluster = new MemoryCluster();
  const disk = new Disk();
  const targets = new Targets(cluster.environment);
  const refs = new Map<MemoryNode, ActorRef<JobCommand>>();
  const start = (node: MemoryNode, durable: boolean) => {
    if (!durable) {
      const make = () => new JobScheduler(node.address, targets.fetch);
      refs.set(node, node.cluster.singleton.start(JobScheduler, make, jobSchedulerOptions()));
      return;
    }
    const options = { host: node.address, persistenceId, open: () => disk.open(node.address), fetch: targets.fetch };
    refs.set(
      node,
      node.cluster.singleton.start(
        DurableJobScheduler,
        () => new DurableJobScheduler(options),
        jobSchedulerOptions(),
      ),
    );
  };
  await cluster.grow(size);
  for (const [index, node] of cluster.nodes.entries()) start(node, durable(index));
  const ask = (node: MemoryNode, command: JobCommand) => cluster.get(refs.get(node)!.ask<JobReply>(command));
  return { cluster, disk, targets, ask };
}

/** No due time and no run number twice, none left out. */
function assertWhole(bodies: readonly JobBody[]): void {
  for (const id of new Set(bodies.map((body) => body.id))) {
    const own = bodies.filter((body) => body.id === id);
    assertEquals(own.map((body) => body.run), own.map((_, index) => index + 1), id);
    assertEquals(new Set(own.map((body) => body.dueAt)).size, own.length, id);
  }
}

describe('durable job scheduler in a cluster', () => {
  test('planned moves lose and double nothing, and each host opens the stores for itself', async () => {
    const { cluster, disk, targets, ask } = await clustered(3);
    targets.tookMs = 30;
    const last = cluster.nodes[2]!;
    for (const id of ['a', 'b', 'c']) {
      assertEquals((await ask(last, { kind: 'put', job: { id, url, everyMs: 200 } })).kind, 'job');
    }
    await cluster.pass(1_000);
    for (let moves = 0; moves < 2; moves++) {
      await cluster.leave(cluster.nodes[0]!);
      await cluster.pass(2_000);
    }
    assertEquals([disk.opens, disk.users], [3, 1]);
    assertEquals(new Set(targets.bodies.map((body) => body.host)).size, 3);
    assertWhole(targets.bodies);
    const reply = await ask(last, { kind: 'list' });
    assert(reply.kind === 'page');
    const bodies = (id: string) => targets.bodies.filter((body) => body.id === id);
    for (const { id, skipped } of reply.jobs) {
      const dues = bodies(id).map((body) => Date.parse(body.dueAt));
      assertEquals((dues.at(-1)! - dues[0]!) / 200 + 1, dues.length + skipped, id);
    }
  });

  test('a crash of the host: its successor has the jobs, and only what was in flight comes twice', async () => {
    const { cluster, disk, targets, ask } = await clustered(3);
    targets.tookMs = 100;
    for (const id of ['a', 'b', 'c', 'd']) {
      await ask(cluster.nodes[2]!, { kind: 'put', job: { id, url, everyMs: 250 } });
      await cluster.pass(60);
    }
    const [host, next] = cluster.nodes as [MemoryNode, MemoryNode];
    await cluster.pass(2_000);
    const seen = targets.bodies.length;
    await cluster.until(() => targets.bodies.length > seen);
    const now = cluster.environment.clock.wall();
    const inFlight = new Set(
      targets.bodies.filter((body) => Date.parse(body.dueAt) > now - 150).map(({ id, run }) => `${id}#${run}`),
    );
    cluster.network.crash(host.address);
    disk.crash(host.address);
    const before = targets.bodies.length;
    // The system of the crashed node goes on in this process; what it does from now on does not count.
    const after = () => targets.bodies.slice(before).filter((body) => body.host === next.address);
    await cluster.until(() => after().length >= 40, 120_000);
    const old = targets.bodies.slice(0, before);
    for (const body of after()) {
      const same = old.find(({ id, run }) => id === body.id && run === body.run);
      if (same === undefined) continue;
      assertEquals(same.dueAt, body.dueAt);
      assert(inFlight.has(`${body.id}#${body.run}`), `${body.id}#${body.run} was not in flight`);
    }
    for (const id of ['a', 'b', 'c', 'd']) {
      const runs = [...new Set([...old, ...after()].filter((body) => body.id === id).map((body) => body.run))];
      assertEquals(runs, runs.map((_, index) => index + 1), id);
    }
    assertGreater(after().filter((body) => inFlight.has(`${body.id}#${body.run}`)).length, 0);
  });

  test('nodes that get a journal one after the other take the jobs along, and keep them from then on', async () => {
    const { cluster, disk, targets, ask } = await clustered(4, (index) => index === 1 || index === 2);
    const last = cluster.nodes[3]!;
    await ask(last, { kind: 'put', job: { id: 'tick', url, everyMs: 200 } });
    await cluster.pass(1_000);
    assertEquals(disk.opens, 0);
    await cluster.leave(cluster.nodes[0]!);
    await cluster.pass(1_000);
    assertGreater(disk.appends, 0);
    // The second of them goes by the journal, and not by what was handed over first.
    assertEquals((await ask(last, { kind: 'put', job: { id: 'more', url, everyMs: 200 } })).kind, 'job');
    await cluster.leave(cluster.nodes[0]!);
    await cluster.pass(1_000);
    // And back to one that has none.
    await cluster.leave(cluster.nodes[0]!);
    await cluster.pass(1_000);
    assertEquals(new Set(targets.bodies.map((body) => body.host)).size, 4);
    assertEquals(disk.users, 0);
    assertWhole(targets.bodies);
    const reply = await ask(last, { kind: 'list' });
    assert(reply.kind === 'page');
    assertEquals(reply.jobs.map((job) => job.id), ['more', 'tick']);
  });

  test('a whole cluster that ends, and another one later on the same stores: the jobs are there', async () => {
    const first = await clustered(2);
    await first.ask(first.cluster.nodes[0]!, { kind: 'put', job: { id: 'tick', url, everyMs: 200 } });
    await first.cluster.pass(1_000);
    while (first.cluster.nodes.length > 0) await first.cluster.leave(first.cluster.nodes[0]!);
    assertEquals(first.disk.users, 0);
    const runs = first.targets.bodies.length;
    const second = new World(first.disk);
    second.start();
    await second.pass(10_000);
    assertGreater(second.targets.bodies.length, 0);
    assertEquals(second.targets.bodies[0]!.run, runs + 1);
  });
});
