import { Actor, ActorSystem } from './src/mod.ts';
import { Cluster, SingletonKey, WarmHandOverActor } from './src/facade/mod.ts';
class Counter extends WarmHandOverActor<any> {
  static readonly singleton = SingletonKey.of<any>('counter');
  n = 0;
  override onReceive(m: any) { this.n++; if (m.ask) this.context.sender.tell({ n: this.n, host: this.cluster.address, epoch: this.context.epoch }); }
  serializeForHandOver() { return new TextEncoder().encode(String(this.n)); }
  restoreFromHandOver(s: Uint8Array) { this.n = Number(new TextDecoder().decode(s)); }
}
const nodes: any[] = [];
const t0 = performance.now();
const log = (...a: any[]) => console.log(Math.round(performance.now() - t0), ...a);
for (let i = 0; i < 3; i++) {
  const system = ActorSystem.create('demo', { logLevel: 'info' });
  const cluster = await Cluster.join(system, { seeds: nodes.length ? [nodes[0].cluster.address] : [] });
  log('joined', cluster.address, cluster.selfMember.upNumber);
  const ref = cluster.singleton.start(Counter);
  nodes.push({ system, cluster, ref });
}
for (const n of nodes) log(await n.ref.ask({ ask: true }));
let sent = 0; 
for (let i = 0; i < 1000; i++) { nodes[i % 3].ref.tell({}); sent++; }
log('move'); 
const leaving = nodes[0].cluster.leave();
for (let i = 0; i < 1000; i++) { nodes[1 + i % 2].ref.tell({}); sent++; }
await leaving; log('left');
for (const n of nodes.slice(1)) log(await n.ref.ask({ ask: true }), sent);
log(await (await fetch(`http://${nodes[1].cluster.address}/cluster/singletons/counter`)).text());
log(await (await fetch(`http://${nodes[1].cluster.address}/cluster/members`)).text());
for (const n of nodes.slice(1)) { await n.system.terminate(); log('terminated'); }
