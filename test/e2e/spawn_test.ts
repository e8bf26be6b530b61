/** Singletons spawned from any node, with real processes of all three runtimes in one cluster. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from '@std/assert';
import {
  exitOf,
  json,
  post,
  ready,
  request,
  type RuntimeName,
  runtimes,
  type Scene,
  scene,
  type TestNode,
  until,
} from './cluster_process.ts';
import type { CountAnswer, CountMessage, SpawnAnswer, SpawnRequest } from './spawn_worker.ts';

const program = 'test/e2e/spawn_worker.ts';
const kinds = ['--kinds', 'counter,other'];
const patient = { spawnTimeoutMs: 30_000, retries: 10, waitIntervalMs: 200 };

async function spawn(node: TestNode, wanted: SpawnRequest): Promise<SpawnAnswer[]> {
  const body = { ...wanted, options: { ...patient, ...wanted.options } };
  const response = await request(node, '/spawn', {
    method: 'POST',
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(40_000),
  });
  return await json(response);
}

async function ask(node: TestNode, name: string, message: CountMessage = 'add'): Promise<CountAnswer> {
  return await until(`${node.line.address} gets an answer of ${name}`, 40_000, async () => {
    const response = await post(node, '/ask', { name, message });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return await json<CountAnswer>(response);
  });
}

async function start(s: Scene, order: readonly RuntimeName[], flags: readonly string[] = kinds): Promise<TestNode[]> {
  s.program = program;
  return await s.cluster(order, flags);
}

describe('spawn from any node', () => {
  for (const oldest of runtimes) {
    const order = [oldest, ...runtimes.filter((runtime) => runtime !== oldest)];
    test(
      `the oldest on ${oldest}: 15 calls at once, later joiners, a killed host, two names, a removal`,
      scene(async (s) => {
        const nodes = await start(s, order);
        const wanted: SpawnRequest = {
          name: 'jobs',
          kind: 'counter',
          times: 5,
          options: { props: { perSecond: 7 }, supervisor: { directive: 'resume' } },
        };
        const refs = (await Promise.all(nodes.map((node) => spawn(node, wanted)))).flat();
        assertEquals(new Set(refs.map((answer) => JSON.stringify(answer))).size, 1, JSON.stringify(refs));
        assert('ref' in refs[0]! && refs.length === 15);
        const answers = await Promise.all(nodes.map((node) => ask(node, 'jobs')));
        assertEquals(answers.map(({ count }) => count).sort(), [1, 2, 3], 'one instance has counted them all');
        for (const { host, props } of answers) {
          assertEquals([host, props], [nodes[0]!.line.address, { perSecond: 7 }]);
        }

        const late = await s.startReady(order[1]!, ['--seeds', nodes[1]!.line.address, ...kinds]);
        assertEquals((await ask(late, 'jobs')).count, 4);

        // Its host is killed: it comes back elsewhere, as it was registered.
        nodes[0]!.process.signal('SIGKILL');
        await exitOf(nodes[0]!.process);
        const back = await ask(nodes[2]!, 'jobs');
        assertEquals([back.host, back.props], [nodes[1]!.line.address, { perSecond: 7 }]);
        assert(back.epoch > answers[0]!.epoch);
        await ask(nodes[2]!, 'jobs', 'fail');
        assertEquals((await ask(late, 'jobs')).count, back.count + 1, 'its supervisor resumes it');

        // Two names for one kind at the same moment: one wins.
        const rivals = (await Promise.all([
          spawn(nodes[1]!, { name: 'one', kind: 'other' }),
          spawn(late, { name: 'two', kind: 'other' }),
        ])).map(([answer]) => answer!);
        const lost = rivals.flatMap((answer) => 'error' in answer ? [answer.error] : []);
        assertEquals(lost.map(({ name, retryable }) => [name, retryable]), [['SingletonAlreadyExistsError', false]]);
        const winner = 'ref' in rivals[0]! ? 'one' : 'two';
        assertStringIncludes(lost[0]!.message, `'${winner}'`);
        assertEquals((await ask(nodes[2]!, winner)).kind, 'other');

        // Removed, and registered again under another name and as another kind under its own.
        assertEquals(await json(await post(late, '/despawn', { name: 'jobs' })), true);
        assertEquals(await json(await post(nodes[1]!, '/despawn', { name: winner })), true);
        assert('ref' in (await spawn(nodes[2]!, { name: 'jobs', kind: 'other' }))[0]!);
        assertEquals((await ask(late, 'jobs')).kind, 'other');
        const shown = await json<{ singletons: { name: string; kind?: string; host: string | null }[] }>(
          await request(late, '/cluster/singletons'),
        );
        assertEquals(shown.singletons.filter(({ kind }) => kind !== undefined).map(({ name, kind }) => [name, kind]), [
          ['jobs', 'other'],
        ]);
      }),
    );
  }

  test(
    'a mixed cluster: never on a node without the kind, though it is the oldest and all others go',
    scene(async (s) => {
      s.program = program;
      const bare = await s.startReady('bun');
      const seeds = ['--seeds', bare.line.address];
      const able = await s.startReady('node', [...seeds, '--kinds', 'counter', '--roles', 'worker']);
      const [answer] = await spawn(bare, { name: 'jobs', kind: 'counter', options: { role: 'worker', props: 1 } });
      assert('ref' in answer!, JSON.stringify(answer));
      assertEquals((await ask(bare, 'jobs')).host, able.line.address);
      const [unknown] = await spawn(able, { name: 'x', kind: 'nobody-has-it' });
      assert('error' in unknown! && unknown.error.name === 'KindNotRegisteredError');
      const impatient = { retries: 2, waitIntervalMs: 10 };
      const [nobody] = await spawn(able, { name: 'x', kind: 'counter', options: { role: 'painter', ...impatient } });
      assert('error' in nobody! && nobody.error.name === 'NoEligibleMemberError');
      assertStringIncludes(nobody.error.message, 'painter');

      able.process.signal('SIGTERM');
      assertEquals((await exitOf(able.process)).code, 0);
      const next = await s.start('deno', [...seeds, '--kinds', 'counter', '--roles', 'worker']);
      await ready(next);
      const moved = await ask(bare, 'jobs');
      assertEquals([moved.host, moved.props], [next.line.address, 1]);
      assertNotEquals(moved.host, bare.line.address);
    }),
  );
});
