import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { ClusterEntry, Member } from '../../src/cluster/member.ts';
import {
  eligibleHosts,
  freshPlace,
  hostOf,
  mayBeNextHost,
  pinKey,
  placeKey,
  placementOf,
} from '../../src/singleton/host.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { type Command, counterClass, Journal } from './fixtures.ts';
import { member, random, viewOf } from './manager_world.ts';

const spread = { generation: 1, role: undefined, placement: 'spread' } as const;
const names = Array.from({ length: 300 }, (_, n) => `job-${n}`);

function starter(uid: string, upNumber: number, started = names): Member {
  return member(uid, { upNumber, started: new Map(started.map((name) => [name, spread])) });
}

function entry(key: string, value: string): [string, ClusterEntry] {
  return [key, { key, version: 1, by: 'x', value }];
}

describe('R147: spread as a function of the view', () => {
  const members = ['a', 'b', 'c', 'd', 'e'].map((uid, at) => starter(uid, at + 1));
  const hosts = (of: readonly Member[], entries = new Map<string, ClusterEntry>()) =>
    new Map(names.map((name) => [name, hostOf(viewOf(of, of[0]!.uid, entries), name)!.uid]));

  test('many singletons share the members, about evenly, and every node computes the same', () => {
    const drawn = hosts(members);
    for (const { uid } of members) {
      const share = [...drawn.values()].filter((host) => host === uid).length;
      assert(share > 35 && share < 90, `${uid} has ${share} of 300`);
      const view = viewOf([...members].reverse(), uid);
      for (const name of names) assertEquals(hostOf(view, name)!.uid, drawn.get(name));
    }
  });

  test('when a member goes, only what it hosted is drawn anew', () => {
    const before = hosts(members);
    const after = hosts(members.filter(({ uid }) => uid !== 'c'));
    for (const name of names) if (before.get(name) !== 'c') assertEquals(after.get(name), before.get(name));
  });

  test('S4: where it has been hosted, it stays through any joins and late starts', () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const next = random(seed);
      const there = [starter('m0', 10)];
      const places = new Map<string, ClusterEntry>();
      for (let step = 0; step < 20; step += 1) {
        const before = hosts(there, places);
        for (const [name, uid] of before) places.set(...entry(placeKey(name), uid));
        // Later, or (a member that starts it late) older than everybody.
        const upNumber = next() < 0.3 ? Math.floor(next() * 10) : 10 + step;
        there.push(starter(`m${step + 1}`, upNumber));
        assertEquals(hosts(there, places), before, `seed ${seed}, step ${step}`);
      }
    }
  });

  test('an operator comes first, then the place, then the draw; one that cannot host any more does not count', () => {
    const name = names[0]!;
    const [first, second, third] = eligibleHosts(viewOf(members, 'a'), name).map(({ uid }) => uid);
    const entries = new Map([entry(placeKey(name), second!), entry(pinKey(name), third!)]);
    const order = (of: readonly Member[]) => eligibleHosts(viewOf(of, 'a', entries), name).map(({ uid }) => uid);
    assertEquals(order(members).slice(0, 3), [third, second, first]);
    assertEquals(order(members.filter(({ uid }) => uid !== third)).slice(0, 2), [second, first]);
    const leaving = members.map((one) => one.uid === second ? { ...one, status: 'leaving' as const } : one);
    assertEquals(order(leaving).slice(0, 2), [third, first]);
  });

  test('two members never both obey each other, and one of two always obeys', () => {
    const next = random(7);
    for (let round = 0; round < 500; round += 1) {
      const name = names[Math.floor(next() * names.length)]!;
      const entries = new Map<string, ClusterEntry>();
      const any = () => members[Math.floor(next() * members.length)]!.uid;
      if (next() < 0.5) entries.set(...entry(placeKey(name), any()));
      if (next() < 0.3) entries.set(...entry(pinKey(name), any()));
      const [host, other] = eligibleHosts(viewOf(members, 'a', entries), name);
      assertEquals(hostOf(viewOf(members, 'b', entries), name), host);
      assert(mayBeNextHost(viewOf(members, other!.uid, entries), name, host!.uid));
      assert(!mayBeNextHost(viewOf(members, host!.uid, entries), name, other!.uid));
    }
  });

  test('the oldest starter says which placement counts', () => {
    const oldest = member('old', { upNumber: 1, started: new Map([['x', { generation: 1, role: undefined }]]) });
    const view = viewOf([oldest, starter('new', 2, ['x'])], 'new');
    assertEquals([placementOf(view, 'x'), hostOf(view, 'x')!.uid, freshPlace(view, 'x')], ['oldest', 'old', undefined]);
  });
});

async function spreadOver(nodes: number, count = 24) {
  const cluster = new MemoryCluster();
  await cluster.grow(nodes);
  const journals = Array.from({ length: count }, () => new Journal());
  const classes = journals.map((journal, n) => counterClass(journal, { name: `job-${n}` }));
  const startAll = ({ cluster: { singleton } }: (typeof cluster.nodes)[0]) => {
    for (const type of classes) singleton.start(type, { placement: 'spread' });
  };
  cluster.nodes.forEach(startAll);
  await cluster.until(() => journals.every(({ live }) => live === 1));
  await cluster.pass(1_000);
  const where = () => journals.map(({ lines }) => lines.at(-1)!.replace('start ', ''));
  return {
    cluster,
    journals,
    where,
    startAll,
    ref: (n: number) => cluster.nodes[0]!.cluster.singleton.ref<Command>(`job-${n}`),
  };
}

describe('R147: spread in a cluster', () => {
  test('S4: joins move nothing; a leave moves what was there; nothing overlaps', async () => {
    const { cluster, journals, where, startAll } = await spreadOver(3);
    const first = where();
    for (const { address } of cluster.nodes) assert(first.includes(address), `${address} hosts none`);
    for (let joins = 0; joins < 3; joins += 1) {
      startAll(await cluster.join());
      await cluster.pass(2_000);
    }
    assertEquals(where(), first);
    assert(journals.every(({ lines }) => lines.length === 1));
    const leaver = cluster.nodes[1]!;
    await cluster.leave(leaver);
    await cluster.until(() => journals.every(({ live }) => live === 1));
    await cluster.pass(1_000);
    for (const [n, address] of where().entries()) {
      if (first[n] !== leaver.address) assertEquals(address, first[n]);
      else assert(address !== leaver.address);
    }
    assert(journals.every(({ peak }) => peak === 1));
  });

  test('the first draw waits for those that start it within a second, later ones wait for nothing', async () => {
    const { cluster, journals, startAll } = await spreadOver(1);
    const [only] = cluster.nodes as [(typeof cluster.nodes)[0]];
    startAll(await cluster.join());
    await cluster.leave(only);
    const before = cluster.environment.clock.now();
    await cluster.until(() => journals.every(({ live }) => live === 1));
    assert(cluster.environment.clock.now() - before < 250, 'the place is known to be free');
    const late = new MemoryCluster();
    await late.grow(2);
    const types = Array.from({ length: 16 }, (_, n) => [new Journal(), `late-${n}`] as const);
    for (const { cluster: { singleton } } of late.nodes) {
      for (const [journal, name] of types) singleton.start(counterClass(journal, { name }), { placement: 'spread' });
      await late.pass(600);
    }
    await late.until(() => types.every(([{ live }]) => live === 1));
    await late.pass(1_000);
    for (const { address } of late.nodes) assert(types.some(([{ lines }]) => lines[0] === `start ${address}`));
    assert(types.every(([{ lines }]) => lines.length === 1));
  });

  test('rebalance uses new members, as moves that lose nothing; what an operator pinned stays', async () => {
    const { cluster, journals, where, startAll, ref } = await spreadOver(1);
    const [only] = cluster.nodes as [(typeof cluster.nodes)[0]];
    assert(where().every((address) => address === only.address));
    startAll(await cluster.join());
    startAll(await cluster.join());
    await cluster.pass(1_000);
    only.cluster.singleton.move('job-0', only.address);
    await cluster.pass(100);
    for (let n = 0; n < journals.length; n += 1) for (let at = 0; at < 20; at += 1) ref(n).tell(at);
    const moves = only.cluster.singleton.rebalance();
    for (let n = 0; n < journals.length; n += 1) for (let at = 20; at < 40; at += 1) ref(n).tell(at);
    await cluster.until(() => journals.every(({ got }) => got.length === 40));
    await cluster.until(() => [...moves].every(([name, to]) => where()[Number(name.slice(4))] === to));
    assert(moves.size > 8 && !moves.has('job-0'), `${[...moves.keys()]}`);
    for (const { got, peak } of journals) assertEquals([got, peak], [Array.from({ length: 40 }, (_, at) => at), 1]);
    for (const { address } of cluster.nodes) assert(where().includes(address));
    assertEquals(only.cluster.singleton.rebalance().size, 0);
  });
});
