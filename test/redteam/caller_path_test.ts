import { describe, test } from 'node:test';
import { assertEquals, assertMatch, assertStringIncludes } from '@std/assert';
import { ActorSystem } from '../../src/actor/system.ts';
import { connect } from '../../src/callers/connect.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { localEnvironment, until } from '../transport/local_environment.ts';
import { proxyTo, type Tampering } from './outsider.ts';

const token = 'a-token-for-tests-1';

describe('red team: somebody on the path of a caller', () => {
  for (const asking of ['node', 'caller'] as const) {
    for (const changing of ['node', 'caller'] as const) {
      test(`S7: frame integrity that the ${asking} asks for: a changed byte of the ${changing} costs the connection, and is not believed`, async () => {
        const system = ActorSystem.create('shop', { logger: localEnvironment().log });
        const cluster = await Cluster.join(system, {
          callers: [{ name: 'tests', token, singletons: ['counter'] }],
          secret: 'a-secret-of-the-cluster',
          frameIntegrity: asking === 'node',
        });
        const journal = new Journal();
        cluster.singleton.start(counterClass(journal));
        const tamper: Tampering = { on: false };
        const proxy = await proxyTo(Number(cluster.address.split(':').at(-1)), tamper);
        const caller = await connect(`127.0.0.1:${proxy.port}`, {
          token,
          frameIntegrity: asking === 'caller',
          logger: localEnvironment().log,
        });
        const ends: string[] = [];
        caller.subscribe((event) => {
          if (event.kind === 'disconnected') ends.push(event.why);
        });
        const counter = caller.singleton.ref<number | string>('counter');
        assertEquals(await counter.ask('count'), 0);
        tamper[changing === 'node' ? 'on' : 'onWayUp'] = true;
        counter.tell(7);
        await until('the end of the connection', () => ends.length === 1);
        tamper.on = tamper.onWayUp = false;
        assertStringIncludes(ends[0]!, 'frame integrity');
        assertEquals(await counter.ask('count', 20_000), 1);
        assertEquals(journal.got, [7]);
        const metrics = await (await fetch(`http://${cluster.address}/metrics`)).text();
        assertMatch(metrics, /^singlet_caller_forged_frames_total [1-9]/m);
        await caller.close();
        assertEquals(caller.ledger('counter').acknowledged, 3);
        proxy.close();
        await cluster.leave();
      });
    }
  }
});
