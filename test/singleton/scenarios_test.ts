/** Scenarios of other systems' suites, and faults that were found in them, as whole clusters on virtual time. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { MemoryNode } from '../facade/memory_cluster.ts';
import { Scene } from './scene.ts';

const worker = { roles: ['worker'] };

async function workers(count: number, settings = {}): Promise<Scene & { readonly first: MemoryNode }> {
  const scene = new Scene();
  for (let n = 0; n < count; n += 1) await scene.add(settings);
  await scene.untilHost(scene.nodes[0]!);
  return Object.assign(scene, { first: scene.nodes[0]! });
}

describe('members come and go', () => {
  test('P1, P3, P4, P5, P6, P7, P8, N1, R16, R17: six workers and an observer; one host through joins, a leave, and crashes of one and two at once', async () => {
    const scene = new Scene();
    const observer = await scene.add(null);
    for (let n = 0; n < 6; n += 1) {
      const joined = await scene.add({ role: 'worker' }, worker);
      await scene.untilHost(scene.nodes[1]!, 1_000);
      if (n > 0) assert(!scene.hosts().includes(joined));
    }
    const [, first, second, third, fourth, fifth, sixth] = scene.nodes as MemoryNode[] & { length: 7 };
    await scene.reachedAt(first!);
    scene.tell(observer, 1);
    await scene.cluster.leave(first!);
    await scene.untilHost(second!, 1_000);
    await scene.reachedAt(second!);
    scene.cluster.lose(second!);
    await scene.untilHost(third!, 3_000);
    await scene.reachedAt(third!);
    scene.cluster.lose(third!);
    scene.cluster.lose(fourth!);
    await scene.untilHost(fifth!, 3_000);
    scene.cluster.lose(fifth!);
    await scene.untilHost(sixth!, 3_000);
    await scene.reachedAt(sixth!);
    assertEquals(scene.starts(), [first, second, third, fifth, sixth].map((node) => node!.address));
  });

  test('P12, P13, P27, N4: every node reaches it at once, from the first message on', async () => {
    const scene = new Scene();
    for (let n = 0; n < 5; n += 1) await scene.cluster.join();
    for (const node of scene.nodes) scene.start(node);
    for (const node of scene.nodes) scene.tell(node, 2);
    await scene.cluster.until(() => scene.numbers().length === 10, 1_000);
    await scene.reachedAt(scene.nodes[0]!);
    assertEquals(scene.starts().length, 1);
  });

  test('P14, P15, P16, N6, FB-017: one after the other leaves, the last one too; each stop comes before the next start', async () => {
    const scene = await workers(3);
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    await scene.cluster.leave(first);
    assert(await scene.untilHost(second) < 250);
    await scene.reachedAt(second);
    await scene.cluster.leave(second);
    assert(await scene.untilHost(third) < 250);
    await scene.cluster.leave(third);
    const order = [first, second, third].flatMap(({ address }) => [['start', address], ['stop', address]]);
    assertEquals(scene.lines.map((line) => [...line]), order);
  });

  test('P17: the host, the next and the one after it leave at once while the stop takes long: nobody starts before its end', async () => {
    const scene = await workers(5);
    scene.stopMs = 3_000;
    const [first, second, third, fourth, fifth] = scene.nodes as MemoryNode[] & { length: 5 };
    const leaves = [first!, second!, fourth!].map((node) => node.cluster.leave());
    await scene.cluster.pass(2_500);
    assertEquals(scene.hosts(), [first!]);
    for (const leave of leaves) await scene.cluster.get(leave);
    for (const gone of [first!, second!, fourth!]) scene.nodes.splice(scene.nodes.indexOf(gone), 1);
    await scene.untilHost(third!);
    assertEquals(scene.lines.map((line) => [...line]), [
      ['start', first!.address],
      ['stop', first!.address],
      ['start', third!.address],
    ]);
    assert(scene.nodes.includes(fifth!));
  });

  test('P28, R26, A4: a silent member that is removed meanwhile is not waited for', async () => {
    const scene = await workers(3, { handOverTimeoutMs: 60_000 });
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    scene.cluster.network.cut(second.address, third.address);
    const leave = first.cluster.leave();
    await scene.cluster.pass(500);
    third.cluster.leave().catch(() => {});
    scene.nodes.splice(2, 1);
    await scene.cluster.get(leave);
    scene.nodes.splice(0, 1);
    assert(await scene.untilHost(second) < 10_000);
  });

  test('P29, P30, N7, N8, FB-013: the host restarts on its address at once: the next one hosts, and the newcomer comes last', async () => {
    for (const count of [2, 3]) {
      const scene = await workers(count);
      const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
      scene.cluster.lose(first);
      const again = await scene.add({}, {}, first.address);
      await scene.untilHost(second, 3_000);
      await scene.cluster.pass(2_000);
      await scene.reachedAt(second);
      await scene.cluster.leave(second);
      await scene.untilHost(count === 2 ? again : scene.nodes[0]!, 1_000);
      assertEquals(scene.starts().length, 3);
    }
  });

  test('P11: a host that is told that it is down stops at once, whatever the others know', async () => {
    const scene = await workers(3);
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    for (const other of [second, third]) scene.cluster.network.cut(first.address, other.address);
    first.cluster.down(first.address);
    await scene.cluster.until(() => scene.lines.some(([what]) => what === 'stop'), 100);
    assertEquals(scene.hosts(), []);
  });

  test('FB-019: the only member leaves and another founds the cluster anew: nobody is waited for', async () => {
    const scene = await workers(1);
    await scene.cluster.leave(scene.nodes[0]!);
    const again = await scene.add();
    assert(await scene.untilHost(again) < 250);
  });

  test('FB-003, FB-006, FB-032, FB-033, R15: newcomers of any version that send at once start nothing', async () => {
    const scene = await workers(1);
    for (let round = 0; round < 6; round += 1) {
      const newcomer = await scene.add({}, { appVersion: `${9 - round}.0.0` });
      scene.tell(newcomer, 5);
      await scene.allHandled();
      if (round % 2 === 0) await scene.cluster.leave(newcomer);
      else scene.cluster.lose(newcomer);
      await scene.cluster.pass(1_000);
    }
    assertEquals(scene.starts().length, 1);
  });

  test('FB-034: five nodes are replaced one by one: as many starts as hosts that were replaced', async () => {
    const scene = await workers(5);
    const replaced = [...scene.nodes];
    for (const old of [...replaced].reverse()) {
      await scene.add();
      await scene.cluster.leave(old);
      await scene.cluster.until(() => scene.hosts().length === 1);
    }
    assertEquals(scene.starts().length, 2, 'youngest first: it moves once');
  });

  test('FB-002, FB-012, FB-018: leaves and crashes at random, with replacements: all agree on one host each time', async () => {
    const scene = await workers(4);
    const { random } = scene.cluster.environment;
    for (let round = 0; round < 12; round += 1) {
      const victim = scene.nodes[random.next() < 0.5 ? 0 : Math.floor(random.next() * scene.nodes.length)]!;
      if (random.next() < 0.5) await scene.cluster.leave(victim);
      else scene.cluster.lose(victim);
      if (random.next() < 0.8) await scene.add();
      while (scene.nodes.length < 3) await scene.add();
      await scene.cluster.until(() => scene.hosts().length === 1, 10_000);
      await scene.untilHost(scene.hosts()[0]!);
      await scene.cluster.pass(1_000);
      await scene.reachedAt(scene.hosts()[0]!);
    }
  });
});

describe('messages over moves', () => {
  test('FB-001, A1, A2, R22, R23: a host with a full mailbox and a slow stop leaves: the next starts after its end, and handles the rest', async () => {
    const scene = await workers(3);
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    scene.workMs = 100;
    scene.stopMs = 600;
    scene.tell(second, 30);
    await scene.cluster.pass(350);
    const leave = first.cluster.leave();
    await scene.cluster.pass(300);
    scene.tell(second, 10);
    await scene.cluster.get(leave);
    scene.nodes.splice(0, 1);
    await scene.untilHost(second);
    await scene.allHandled();
    assertEquals(scene.numbers(), Array.from({ length: 40 }, (_, n) => n));
    const stop = scene.lines.findIndex(([what]) => what === 'stop');
    const [started] = scene.lines[stop + 1]!;
    assertEquals(started, 'start');
  });

  test('FB-004: the host depends on a role that the leader has not got: messages of all nodes arrive through joins', async () => {
    const scene = new Scene();
    await scene.add(null);
    const host = await scene.add({ role: 'worker' }, worker);
    await scene.untilHost(host);
    for (let n = 0; n < 3; n += 1) {
      for (const node of scene.nodes) scene.tell(node, 20);
      await scene.add({ role: 'worker' }, worker);
      for (const node of scene.nodes) scene.tell(node, 20);
    }
    await scene.allHandled();
    assertEquals(scene.starts(), [host.address]);
  });

  test('FB-015: it goes back and forth between two nodes that both stay', async () => {
    const scene = await workers(2);
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    for (let round = 0; round < 5; round += 1) {
      for (const node of [second, first]) {
        scene.tell(first, 10);
        first.cluster.singleton.move('jobs', node.address);
        scene.tell(second, 10);
        await scene.untilHost(node);
      }
    }
    await scene.allHandled();
    assertEquals(scene.starts().length, 11);
  });

  test('R19, R51, FB-023: while its host is out of reach messages are kept up to the bound, then reported; what was kept arrives', async () => {
    const scene = new Scene();
    for (let n = 0; n < 3; n += 1) await scene.add({ bufferSize: 5 }, { downing: 'manual' });
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    await scene.untilHost(first);
    for (const other of [second, third]) scene.cluster.network.cut(first.address, other.address);
    await scene.cluster.pass(5_000);
    const reasons: string[] = [];
    second.system.deadLetters.subscribe(({ reason }) => reasons.push(reason));
    scene.tell(second, 8);
    await scene.cluster.pass(5_000);
    assertEquals(reasons, ['buffer-overflow', 'buffer-overflow', 'buffer-overflow']);
    for (const other of [second, third]) scene.cluster.network.heal(first.address, other.address);
    await scene.cluster.until(() => scene.numbers().length === 5);
    assertEquals(scene.numbers(), [0, 1, 2, 3, 4]);
    assertEquals(scene.starts().length, 1);
  });

  test('FB-014, R28: the successor hears of the leave late: the gap is the stop, not a multiple of a retry', async () => {
    const scene = await workers(3);
    const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
    const { clock } = scene.cluster.environment;
    const stopped = { at: 0 };
    first.cluster.leave().catch(() => {});
    await scene.cluster.until(() => {
      if (stopped.at === 0 && scene.lines.some(([what]) => what === 'stop')) stopped.at = clock.now();
      return scene.starts().length === 2;
    });
    assert(clock.now() - stopped.at < 100, `${clock.now() - stopped.at} ms without an instance`);
    scene.nodes.splice(0, 1);
    scene.tell(third, 5);
    await scene.untilHost(second);
    await scene.allHandled();
  });

  test('FB-035: what was stopped everywhere stays down when its node leaves', async () => {
    const scene = await workers(2);
    const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
    second.cluster.singleton.stop('jobs');
    first.cluster.singleton.stop('jobs');
    await scene.cluster.pass(10);
    await scene.cluster.leave(first);
    await scene.cluster.pass(3_000);
    assertEquals([scene.hosts(), scene.starts().length], [[], 1]);
  });

  test('FB-028, R52: a singleton that nobody can host has a problem that says so, on every node, until somebody does', async () => {
    const scene = new Scene();
    const lonely = await scene.add(null);
    scene.tell(lonely, 3);
    await scene.cluster.pass(1_000);
    assertEquals(lonely.cluster.singleton.find('jobs')!.problem(), 'no member has started it');
    const host = await scene.add();
    await scene.untilHost(host);
    await scene.allHandled();
  });
});

test('FB-107, R60: a singleton that cannot start for two minutes is tried seldom, and runs soon after the trouble is over', async () => {
  const scene = new Scene();
  const node = await scene.cluster.join();
  const { clock } = scene.cluster.environment;
  const until = clock.now() + 120_000;
  let attempts = 0;
  class Fragile extends Actor<never> {
    override preStart(): void {
      attempts += 1;
      if (clock.now() < until) throw new Error('its store is down');
    }
    override onReceive(): void {}
  }
  node.cluster.singleton.start({ typeName: 'fragile', actor: Fragile });
  const phase = () => node.cluster.singleton.find('fragile')!.manager.state.phase;
  await scene.cluster.until(
    () => 'instance' in phase() && (phase() as { instance: string }).instance === 'running',
    200_000,
  );
  assert(attempts <= 11, `${attempts} attempts`);
  assert(clock.now() - until < 37_000, `${clock.now() - until} ms later`);
});

test('S3: a message that its sender has changed into what cannot be sent is reported at the next move, and holds up nothing', async () => {
  const scene = new Scene();
  for (let n = 0; n < 3; n += 1) await scene.add();
  const [first, second, third] = scene.nodes as [MemoryNode, MemoryNode, MemoryNode];
  await scene.untilHost(first);
  scene.workMs = 200;
  const reasons: string[] = [];
  third.system.deadLetters.subscribe(({ reason }) => reasons.push(reason));
  scene.tell(third, 3);
  const changing: Record<string, unknown> = {};
  scene.ref(third).tell(changing as never);
  scene.tell(third, 3);
  await scene.cluster.pass(50);
  changing['later'] = () => 1;
  first.cluster.singleton.move('jobs', second.address);
  await scene.untilHost(second);
  await scene.cluster.until(() => scene.numbers().length === 6);
  assertEquals(scene.numbers(), [0, 1, 2, 3, 4, 5]);
  const { told, acknowledged, deadLettered, buffered } = third.cluster.singleton.find('jobs')!.proxy.stream.ledger();
  await scene.cluster.pass(1_000);
  assertEquals([reasons, told, acknowledged + deadLettered + buffered], [['unserializable'], 7, 7]);
  scene.tell(third, 2);
  await scene.cluster.until(() => scene.numbers().length === 8);
});
