/** Callers from outside on three runtimes, against real nodes of three runtimes that move, die and are replaced. */
import { test } from 'node:test';
import { assert } from '@std/assert';
import type { LoadReport } from './caller_load.ts';
import { assertAccounted, callerToken as token, disturb, startHosts } from './caller_scene.ts';
import { runtimes, scene, until, withDeadline } from './cluster_process.ts';

test(
  'S3, R149: callers on three runtimes, through a planned move and the death of the host and of a gateway',
  scene(async (s) => {
    const nodes = await startHosts(s);
    const urls = nodes.map(({ line }) => line.address);
    s.program = 'test/e2e/caller_client.ts';
    const count = 400;
    const callers = runtimes.map((runtime) =>
      s.spawn(runtime, [JSON.stringify({ from: runtime, urls, token, count, everyMs: 20 })])
    );
    const gateways = async () =>
      callers.filter(({ exit }) => exit === undefined)
        .map(({ stdout }) => stdout.findLast((line) => line.startsWith('connected '))?.slice('connected '.length) ?? '')
        .filter((url) => url !== '');
    await until('all are connected', 40_000, async () => (await gateways()).length === 3);
    await disturb(nodes, gateways);
    let reconnects = 0;
    for (const caller of callers) {
      await withDeadline(caller.exited, () => `${caller.runtime} caller ends\n${caller.output()}`, 90_000);
      const line = caller.stdout.at(-1) ?? '';
      assert(line.startsWith('report '), caller.output());
      const report = JSON.parse(line.slice('report '.length)) as LoadReport;
      assertAccounted(report, nodes, count);
      reconnects += report.reconnects;
    }
    assert(reconnects > 0, 'somebody was connected to a node that died');
  }),
);
