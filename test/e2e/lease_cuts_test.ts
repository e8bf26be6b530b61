/** Leases over real processes: hosts that are cut off from each other or from etcd, and an etcd that goes away. */
import { after, before, describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { EtcdServer, noEtcd } from '../coordination/etcd_server.ts';
import { deadlineMs, until } from './cluster_process.ts';
import { Forwarder } from './forwarder.ts';
import { LeaseScene } from './lease_scene.ts';
import { assertOneAfterTheOther, atWork, cutInTwo, exactlyOne, orders, outage, ttlMs } from './lease_steps.ts';

/** Host and other; the other's clock is an hour ahead. */
const pairs = orders.map(([host, other]) => [host, other] as const);

let etcd: EtcdServer;

/** A scene whose host has a way of its own to etcd. */
function withWay(run: (scene: LeaseScene, way: Forwarder) => Promise<void>): () => Promise<void> {
  return LeaseScene.test(async (scene) => {
    const way = await Forwarder.to(etcd.url);
    try {
      await run(scene, way);
    } finally {
      await way.cut();
    }
  });
}

describe('leases of real processes that are cut off', { concurrency: 3, skip: noEtcd }, () => {
  before(async () => {
    if (noEtcd === false) etcd = await EtcdServer.start();
  });
  after(() => etcd?.remove());

  for (const pair of pairs) {
    const title = pair.join(', ');

    test(
      `S1, P59: two halves are cut off from each other, but not from etcd: exactly one goes on (${title})`,
      LeaseScene.test(async (scene) => {
        await scene.start(pair, ttlMs, { etcd: [etcd.url], split: true });
        const { host, token } = await atWork(scene);
        await cutInTwo(scene);
        const other = scene.workers.find((worker) => worker !== host)!;
        await until('the other half is out', deadlineMs, () => other.says('this node has ended') || undefined);
        const { length } = host.handled();
        await until('the host goes on', deadlineMs, () => host.handled().length >= length + 20 || undefined);
        assertEquals(host.handled().at(-1)!.token, token);
        assertEquals(other.handled(), []);
        for (const way of scene.ways) await way.mend();
        await scene.ready(other);
        await scene.members(2);
        assertOneAfterTheOther(scene);
      }),
    );

    test(
      `S1, R92: the half of the host is cut off from the other one and from etcd: the other goes on (${title})`,
      withWay(async (scene, way) => {
        await scene.start(pair, ttlMs, { etcd: [way.url, etcd.url], split: true });
        const { host, token } = await atWork(scene);
        assertEquals(host, scene.workers[0]);
        way.silence();
        await cutInTwo(scene);
        await exactlyOne(scene, token);
      }),
    );

    test(
      `S1: the host is cut off from etcd, but not from its peers: nobody runs until it is back (${title})`,
      withWay(async (scene, way) => {
        await scene.start(pair, ttlMs, { etcd: [way.url, etcd.url] });
        const { host, token } = await outage(scene, () => way.cut());
        assertEquals(host, scene.workers[0]);
        await way.mend();
        await exactlyOne(scene, token);
      }),
    );

    test(
      `FB-007: etcd is gone for longer than a term: the instance handles nothing after its end, and exactly one runs after (${title})`,
      LeaseScene.test(async (scene) => {
        const own = await EtcdServer.start();
        try {
          await scene.start(pair, ttlMs, { etcd: [own.url] });
          const { token } = await outage(scene, () => own.stop());
          await own.run();
          await exactlyOne(scene, token);
        } finally {
          await own.remove();
        }
      }),
    );
  }
});
