/**
 * "Run this once in the cluster": every node says so, one node does it, and another one goes on when that one leaves.
 *
 *     bun run examples/scheduled_task.ts
 *     deno run --allow-net examples/scheduled_task.ts
 *     node examples/scheduled_task.ts
 */
import { ActorSystem } from 'singlet';
import { Cluster, singletonTask } from 'singlet/cluster';

const runs: { dueAt: number; on: string }[] = [];
const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('example', { logLevel: 'error' });
  const cluster = await Cluster.join(system, { seeds: clusters.slice(0, 1).map((first) => first.address) });
  clusters.push(cluster);
  singletonTask(cluster, 'report', { everyMs: 200 }, ({ dueAt }) => void runs.push({ dueAt, on: cluster.address }));
}

const until = async (count: number): Promise<void> => {
  while (runs.length < count) await new Promise((resolve) => setTimeout(resolve, 20));
};
await until(5);
await clusters[0]!.leave();
await until(10);

const steps = runs.slice(1).map((run, index) => run.dueAt - runs[index]!.dueAt);
console.log(
  'runs:',
  runs.length >= 10,
  'hosts:',
  new Set(runs.map((run) => run.on)).size,
  'each due time once:',
  steps.every((step) => step === 200),
);

for (const cluster of clusters) await cluster.system.terminate();
