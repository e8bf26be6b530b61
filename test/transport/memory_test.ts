import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { Environment } from '../../src/actor/environment.ts';
import type { DialFailure, Link, LinkClose } from '../../src/transport/contract.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';
import { localEnvironment } from './local_environment.ts';

/** Virtual time: `run(ms)` does everything that is due within that time. */
function virtual() {
  let now = 0;
  let order = 0;
  const due: { at: number; order: number; run: () => void }[] = [];
  const set = (delayMs: number, run: () => void) => {
    const entry = { at: now + delayMs, order: order++, run };
    due.push(entry);
    return () => {
      const index = due.indexOf(entry);
      if (index >= 0) due.splice(index, 1);
    };
  };
  const environment: Environment = {
    ...localEnvironment(),
    clock: { now: () => now, wall: () => now },
    timers: { set },
    turns: { schedule: (run) => void set(0, run) },
  };
  const run = (ms: number) => {
    const end = now + ms;
    for (;;) {
      due.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = due[0];
      if (next === undefined || next.at > end) break;
      due.shift();
      now = next.at;
      next.run();
    }
    now = end;
  };
  return { environment, run };
}

async function world() {
  const { environment, run } = virtual();
  const network = new MemoryNetwork({ environment, delayMs: () => 2 });
  const nodes = await Promise.all(['h:1', 'h:2'].map(async (address) => {
    const heard = { accepted: [] as Link[], frames: [] as number[], closed: [] as LinkClose[] };
    const transport = network.transport({ address, uid: `u${address}`, clusterName: 'c' });
    await transport.start({
      accepted: (link) => void heard.accepted.push(link),
      frame: (_link, bytes) => void heard.frames.push(bytes[0] ?? -1),
      closed: (_link, close) => void heard.closed.push(close),
      listenerLost: () => {},
    });
    return { transport, heard };
  }));
  const [a, b] = nodes as [typeof nodes[0], typeof nodes[0]];
  const dialled: (Link | DialFailure)[] = [];
  a.transport.dial('h:2', (outcome) => void dialled.push(outcome));
  run(10);
  return { network, run, a, b, link: dialled[0] as Link };
}

test('a cut holds frames back in order, a heal lets them through', async () => {
  const { network, run, b, link } = await world();
  network.cut('h:1', 'h:2');
  for (let i = 0; i < 5; i++) link.send(Uint8Array.of(i));
  run(60_000);
  assertEquals([b.heard.frames, link.bufferedBytes()], [[], 5]);
  network.heal('h:1', 'h:2');
  link.send(Uint8Array.of(5));
  run(10);
  assertEquals([b.heard.frames, link.bufferedBytes()], [[0, 1, 2, 3, 4, 5], 0]);
});

test('over a cut, dials and probes time out', async () => {
  const { network, run, a } = await world();
  network.cut('h:1', 'h:2');
  const outcomes: string[] = [];
  a.transport.dial('h:2', (outcome) => outcomes.push('reason' in outcome ? outcome.reason : 'link'));
  a.transport.probe('h:2', (outcome) => outcomes.push(outcome));
  a.transport.seed('h:2', (answer) => outcomes.push('reason' in answer ? answer.reason : 'answer'));
  run(60_000);
  assertEquals(outcomes, ['timeout', 'timeout', 'timeout']);
  network.heal('h:1', 'h:2');
  run(100);
  assertEquals([outcomes.length, a.heard.closed.length], [3, 0]);
});

test('a cut in one direction lets the other through', async () => {
  const { network, run, a, b, link } = await world();
  network.cutOneWay('h:1', 'h:2');
  link.send(Uint8Array.of(1));
  b.heard.accepted[0]?.send(Uint8Array.of(2));
  run(100);
  assertEquals([a.heard.frames, b.heard.frames], [[2], []]);
});

test('a crash is a loss for the peer, silence for the victim, and frees the address', async () => {
  const { network, run, a, b, link } = await world();
  network.crash('h:2');
  link.send(Uint8Array.of(1));
  run(100);
  assertEquals([a.heard.closed.map(({ clean }) => clean), b.heard.closed, b.heard.frames], [[false], [], []]);
  const outcomes: string[] = [];
  a.transport.probe('h:2', (outcome) => outcomes.push(outcome));
  run(100);
  assertEquals(outcomes, ['refused']);
  const events = { accepted() {}, frame() {}, closed() {}, listenerLost() {} };
  assertEquals(await network.transport({ address: 'h:2', uid: 'new', clusterName: 'c' }).start(events), 'h:2');
});

test('a listener that is lost is reported once', async () => {
  const { environment, run } = virtual();
  const network = new MemoryNetwork({ environment });
  const lost: string[] = [];
  const transport = network.transport({ address: 'h:1', uid: 'u', clusterName: 'c' });
  await transport.start({ accepted() {}, frame() {}, closed() {}, listenerLost: (why) => void lost.push(why) });
  transport.loseListener('gone');
  transport.loseListener('gone');
  assertEquals(lost, []);
  run(1);
  assertEquals(lost, ['gone']);
});
