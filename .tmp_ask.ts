import { ActorSystem } from './src/mod.ts';
import { Cluster, SingletonKey, WarmHandOverActor } from './src/facade/mod.ts';
class Counter extends WarmHandOverActor<any> {
  static readonly singleton = SingletonKey.of<any>('counter');
  n = 0;
  override onReceive(m: any) { this.n++; if (m.ask) this.context.sender.tell(this.n); }
  serializeForHandOver() { return new TextEncoder().encode(String(this.n)); }
  restoreFromHandOver(s: Uint8Array) { this.n = Number(new TextDecoder().decode(s)); }
}
const nodes: any[] = [];
for (let i = 0; i < 2; i++) {
  const system = ActorSystem.create('demo', { logLevel: 'error' });
  const cluster = await Cluster.join(system, { seeds: nodes.length ? [nodes[0].cluster.address] : [] });
  nodes.push({ system, cluster, ref: cluster.singleton.start(Counter) });
}
for (const [i, n] of nodes.entries()) {
  for (let k = 0; k < 5; k++) { const t = performance.now(); await n.ref.ask({ ask: true }); console.log(i, 'ask', (performance.now() - t).toFixed(2)); }
  const t = performance.now(); for (let k = 0; k < 2000; k++) await n.ref.ask({ ask: true }); console.log(i, '2000 asks', (performance.now() - t).toFixed(0));
  const t2 = performance.now(); const K = 200000;
  for (let k = 0; k < K; k += 1000) { for (let j = 0; j < 1000; j++) n.ref.tell({ x: 1 }); await n.ref.ask({ ask: true }); }
  console.log(i, 'tells/s', Math.round(K / (performance.now() - t2) * 1000));
}
process.exit(0);
