/**
 * One budget of calls for the whole cluster: whoever wants to call a paid API asks first. The rest of the second's budget moves
 * along with the singleton, so a hand-over grants nothing twice. Three nodes in one process, for the sake of the example:
 *
 *     bun run examples/rate_budget.ts
 *     deno run --allow-net examples/rate_budget.ts
 *     node examples/rate_budget.ts
 */
import { ActorSystem } from 'singlet';
import { Cluster, SingletonKey, WarmHandOverActor } from 'singlet/cluster';

const perSecond = 50;

/** A token bucket: it fills evenly, and holds at most what one second gives. */
class RateBudget extends WarmHandOverActor<'take'> {
  static readonly singleton = SingletonKey.of<'take'>('rate-budget');
  #tokens = perSecond;
  #filledAt = Date.now();

  override onReceive(): void {
    const now = Date.now();
    this.#tokens = Math.min(perSecond, this.#tokens + Math.max(0, now - this.#filledAt) / 1_000 * perSecond);
    this.#filledAt = now;
    const granted = this.#tokens >= 1;
    if (granted) this.#tokens -= 1;
    this.context.sender.tell({ granted });
  }

  serializeForHandOver(): Uint8Array {
    return new TextEncoder().encode(JSON.stringify([this.#tokens, this.#filledAt]));
  }

  restoreFromHandOver(state: Uint8Array): void {
    [this.#tokens, this.#filledAt] = JSON.parse(new TextDecoder().decode(state));
  }
}

const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('example', { logLevel: 'error' });
  clusters.push(await Cluster.join(system, { seeds: clusters.slice(0, 1).map((first) => first.address) }));
}
const budgets = clusters.map((cluster) => cluster.singleton.start(RateBudget));

/** Nodes that are still there ask as fast as they are answered. */
async function askFor(ms: number, from: number): Promise<{ granted: number; refused: number }> {
  const counts = { granted: 0, refused: 0 };
  const end = Date.now() + ms;
  await Promise.all(
    budgets.slice(from).map(async (budget) => {
      while (Date.now() < end) {
        const { granted } = await budget.ask<{ granted: boolean }>('take', 10_000);
        counts[granted ? 'granted' : 'refused'] += 1;
      }
    }),
  );
  return counts;
}

const started = Date.now();
const before = await askFor(500, 0);
await clusters[0]!.leave(); // the host: the budget moves
const after = await askFor(500, 1);
const seconds = (Date.now() - started) / 1_000;
const granted = before.granted + after.granted;
console.log(
  'within the budget:',
  granted <= perSecond * (1 + seconds) + 1,
  'used up:',
  granted >= perSecond,
  'refused:',
  after.refused > 0,
);

for (const cluster of clusters) await cluster.system.terminate();
