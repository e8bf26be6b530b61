import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { ManualDowning } from '../../src/cluster/downing/mod.ts';
import { codes } from '../../src/wire/codes.ts';
import { Harness, statuses, type TestNode } from './support/node_harness.ts';

const hosting = new Map([['s', { epoch: 1, plannedSince: 1, since: 1 }]]);

describe('rule 2: the host gate', () => {
  test('is open while nothing is hosted, and a round trip after hosting has begun', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode];
    assert(a.node.gate.open());
    a.node.publish({ hosting });
    assertEquals(a.node.gate.open(), false);
    let opened = 0;
    a.node.gate.onOpen(() => void opened++);
    const took = await harness.until(() => a.node.gate.open(), 100);
    assert(took <= 5, `took ${took} ms`);
    assertEquals(opened, 1);
    assert(b.node.gate.open());
    assertEquals(b.node.view().members.find((member) => member.uid === a.node.uid)?.hosting, hosting);
  });

  test('closes G after the last ping that a majority acknowledged, long before anybody is removed', async () => {
    const harness = new Harness();
    const [a, b, c] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode, TestNode];
    a.node.publish({ hosting });
    await harness.environment.elapse(2_000);
    assert(a.node.gate.open());
    harness.cutAll([a], [b, c]);
    const took = await harness.until(() => !a.node.gate.open(), 3_000);
    const { gateWindowMs, gatePingMs } = a.node.settings.timing;
    assert(took <= gateWindowMs && took >= gateWindowMs - gatePingMs - 10, `closed after ${took} ms`);
    assertEquals(statuses(b).length, 3);
    let opened = 0;
    a.node.gate.onOpen(() => void opened++);
    harness.healAll([a], [b, c]);
    await harness.until(() => a.node.gate.open(), 1_000);
    assertEquals(opened, 1);
  });

  test('one acknowledging peer of two is enough', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode];
    a.node.publish({ hosting });
    harness.network.cut(a.address, b.address);
    await harness.environment.elapse(1_900);
    assert(a.node.gate.open());
  });

  test('R145: after a pause it is closed before anything else has run, and opens again with fresh answers', async () => {
    const harness = new Harness();
    const [a] = await harness.cluster(3, '10.0.0.') as [TestNode];
    a.node.publish({ hosting });
    await harness.environment.elapse(1_000);
    harness.environment.jump(60_000);
    assertEquals(a.node.gate.open(), false);
    await harness.until(() => a.node.gate.open(), 1_000);
    assertEquals(a.node.ended(), undefined);
    await harness.environment.elapse(5_000);
    assertEquals(statuses(a), ['10.0.0.1:4000 up', '10.0.0.2:4000 up', '10.0.0.3:4000 up']);
  });

  test('nobody acknowledges a member that it has seen down', async () => {
    const harness = new Harness();
    const [a, b, c] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode, TestNode];
    a.node.publish({ hosting });
    await harness.environment.elapse(500);
    harness.cutAll([a], [b, c]);
    b.node.down(a.address);
    await harness.environment.elapse(10);
    for (const other of [b, c]) {
      let answered = 0;
      const send = other.node.peers.sendSystem.bind(other.node.peers);
      other.node.peers.sendSystem = (to, envelope) => {
        if (envelope[0] === codes.gatePong) answered++;
        send(to, envelope);
      };
      const identity = { address: a.address, uid: a.node.uid, clusterName: 'test', roles: [], runtime: 'memory' };
      other.node.events.message(identity, [codes.gatePing, 1], 0);
      assertEquals(answered, 0);
    }
  });

  test('there is none with manual downing, and it is shut for good once the node has ended', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(2, '10.0.0.', { strategy: new ManualDowning() });
    const [a, b] = nodes as [TestNode, TestNode];
    a.node.publish({ hosting });
    harness.network.cut(a.address, b.address);
    await harness.environment.elapse(10_000);
    assert(a.node.gate.open());
    a.node.down(a.address);
    assertEquals(a.node.gate.open(), false);
  });
});

describe('messages of other parts', () => {
  const code = codes.deliver;

  test('come from members only; each code has one owner', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    const got: unknown[] = [];
    const cancel = a.node.onMessage(code, (peer, envelope) => void got.push([peer.uid, envelope[1]]));
    let refused = '';
    try {
      a.node.onMessage(code, () => {});
    } catch (error) {
      refused = String(error);
    }
    assert(refused.includes('has an owner'));
    b.node.sendSystem(a.address, [code, 'hello']);
    await harness.environment.elapse(10);
    const stranger = { address: '10.0.0.9:1', uid: 'stranger', clusterName: 'test', roles: [], runtime: 'memory' };
    a.node.events.message(stranger, [code, 'forged'], 0);
    a.node.events.message({ ...stranger, uid: b.node.uid }, [code, 'forged address'], 0);
    assertEquals(got, [[b.node.uid, 'hello']]);
    cancel();
    b.node.sendSystem(a.address, [code, 'late']);
    await harness.environment.elapse(10);
    assertEquals(got.length, 1);
    assertEquals(a.node.counters().get('messages without an owner'), 1);
    assertEquals(a.node.counters().get('messages from no member'), 2);
  });

  test('R115: malformed envelopes of every membership code are refused and counted, and change nothing', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    const identity = { address: b.address, uid: b.node.uid, clusterName: 'test', roles: [], runtime: 'memory' };
    const junk: unknown[] = [undefined, null, -1, NaN, 'x', [], {}, [[[]]], new Map(), 2 ** 60];
    const before = a.node.view();
    for (let one = codes.join; one <= codes.joinRefused; one++) {
      for (const first of junk) {
        for (const second of junk) a.node.events.message(identity, [one, first, second, first, second], 0);
      }
    }
    await harness.environment.elapse(50);
    assertEquals(a.node.view().members, before.members);
    assertEquals(a.node.ended(), undefined);
    for (
      const name of [
        'refused gossip',
        'refused digest',
        'refused heartbeat',
        'refused notice',
        'refused pledge',
        'refused join',
      ]
    ) {
      assert((a.node.counters().get(name) ?? 0) > 0, name);
    }
  });

  test('entries reach everybody; the later write wins', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.');
    const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
    const keys: string[] = [];
    c.node.onChange((_view, changes) => {
      for (const change of changes) if (change.kind === 'entry') keys.push(change.key);
    });
    a.node.writeEntry('pin/s', { uid: 'x' });
    await harness.environment.elapse(20);
    b.node.writeEntry('pin/s', null);
    await harness.environment.elapse(20);
    for (const one of nodes) assertEquals(one.node.view().entries.get('pin/s')?.value, null);
    assertEquals(c.node.view().entries.get('pin/s')?.version, 2);
    assertEquals(keys, ['pin/s', 'pin/s']);
    assert(nodes.every((one) => one.node.view().converged));
  });

  test('two nodes that write the same key at once end with the same value', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.');
    nodes[0]?.node.writeEntry('k', 'first');
    nodes[1]?.node.writeEntry('k', 'second');
    await harness.until(() => nodes.every((one) => one.node.view().converged), 2_000);
    assertEquals(new Set(nodes.map((one) => one.node.view().entries.get('k')?.value)).size, 1);
  });
});
