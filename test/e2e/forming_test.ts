import { describe, test } from 'node:test';
import { assert, assertEquals, assertNotEquals } from '@std/assert';
import {
  deadlineMs,
  freePorts,
  ready,
  type RuntimeName,
  sameCluster,
  scene,
  seedView,
  sleep,
  type TestNode,
  until,
} from './cluster_process.ts';

describe('joining', () => {
  for (const kinds of [['bun', 'deno', 'node'], ['deno', 'node', 'bun'], ['node', 'bun', 'deno']] as const) {
    test(
      `a second and a third node join, mixed runtimes (${kinds.join(', ')})`,
      scene(async (s) => {
        const nodes = [await s.startReady(kinds[0])];
        for (const kind of kinds.slice(1)) {
          const node = await s.start(kind, ['--seeds', nodes[0]!.line.address]);
          const printedAt = performance.now();
          await ready(node);
          console.log(`# ${kind} joined ${(performance.now() - printedAt).toFixed(0)} ms after its line`);
          nodes.push(node);
        }
        await sameCluster(nodes);
      }),
    );
  }

  test(
    'a node whose seeds are all dead never forms an island, says so, and joins when one comes',
    scene(async (s) => {
      const [seedPort] = await freePorts(1);
      const node = await s.start('bun', ['--seeds', `127.0.0.1:${seedPort}`]);
      await sleep(3_000);
      assert(!(await seedView(node)).clusterId);
      assertEquals(node.process.exit, undefined);
      const seed = await s.startReady('node', ['--port', String(seedPort)]);
      await ready(node);
      await sameCluster([seed, node]);
    }),
  );

  test(
    '--form forms a cluster although no seed answers',
    scene(async (s) => {
      const [deadPort] = await freePorts(1);
      await s.startReady('deno', ['--form', '--seeds', `127.0.0.1:${deadPort}`]);
    }),
  );
});

describe('the same seed list everywhere', () => {
  const rounds: readonly { readonly kinds: readonly RuntimeName[]; readonly delaysMs: readonly number[] }[] = [
    { kinds: ['bun', 'deno', 'node'], delaysMs: [0, 0, 0] },
    { kinds: ['node', 'node', 'node'], delaysMs: [0, 0, 0] },
    { kinds: ['bun', 'bun', 'bun'], delaysMs: [0, 0, 0] },
    { kinds: ['deno', 'deno', 'deno'], delaysMs: [0, 0, 0] },
    { kinds: ['bun', 'deno', 'node'], delaysMs: [600, 300, 0] },
    { kinds: ['node', 'bun', 'deno'], delaysMs: [300, 0, 600] },
  ];
  for (const { kinds, delaysMs } of rounds) {
    test(
      `three nodes (${kinds.join(', ')}; after ${delaysMs.join(', ')} ms) form exactly one cluster`,
      scene(async (s) => {
        const ports = await freePorts(3);
        const seeds = ports.map((port) => `127.0.0.1:${port}`).join(',');
        const nodes = await Promise.all(kinds.map(async (kind, index) => {
          await sleep(delaysMs[index]!);
          return await s.startReady(kind, ['--port', String(ports[index]), '--seeds', seeds]);
        }));
        await sameCluster(nodes);
      }),
    );
  }

  test(
    'a seed that restarts joins the others again',
    scene(async (s) => {
      const ports = await freePorts(3);
      const seeds = ports.map((port) => `127.0.0.1:${port}`).join(',');
      const flags = (index: number) => ['--port', String(ports[index]), '--seeds', seeds];
      const kinds = ['bun', 'deno', 'node'] as const;
      const nodes = await Promise.all(kinds.map((kind, index) => s.startReady(kind, flags(index))));
      const id = await sameCluster(nodes);
      for (const [index, signal] of (['SIGKILL', 'SIGTERM', 'SIGKILL'] as const).entries()) {
        const old = nodes[index]!;
        old.process.signal(signal);
        await old.process.exited;
        nodes[index] = await s.startReady(kinds[index]!, flags(index));
        assertEquals(await sameCluster(nodes), id);
        assertNotEquals(nodes[index]!.line.uid, old.line.uid);
      }
    }),
  );
});

describe('restart at the same address', () => {
  for (const kind of ['node', 'bun', 'deno'] as const) {
    test(
      `R144: killed and started again at once, ten times in a row (${kind})`,
      scene(async (s) => {
        const [port] = await freePorts(1);
        const stable = [await s.startReady('bun'), undefined as unknown as TestNode];
        const seed = stable[0]!.line.address;
        stable[1] = await s.startReady('node', ['--seeds', seed]);
        const flags = ['--port', String(port), '--seeds', seed];
        let restarting = await s.startReady(kind, flags);
        const id = await sameCluster([...stable, restarting]);
        for (let round = 0; round < 10; round++) {
          const before = restarting;
          before.process.signal('SIGKILL');
          await before.process.exited;
          restarting = await s.startReady(kind, flags);
          await until('the new incarnation is a member', deadlineMs, async () => {
            const view = await seedView(restarting);
            return view.clusterId === id && view.members.includes(restarting.line.address) || undefined;
          });
        }
        assertEquals(await sameCluster([...stable, restarting]), id);
      }),
    );
  }
});
