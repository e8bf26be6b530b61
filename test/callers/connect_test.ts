import { describe, test } from 'node:test';
import {
  assert,
  assertEquals,
  assertFalse,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from '@std/assert';
import { runtime } from '#runtime';
import { OptionsError } from '../../src/actor/options.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { callerUrl } from '../../src/callers/dial.ts';
import { checkConnect } from '../../src/callers/caller_options.ts';
import { connect, ConnectError } from '../../src/callers/connect.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { callerPath, callerSubprotocol } from '../../src/transport/protocol.ts';
import type { Runtime, Socket } from '../../src/transport/runtime.ts';
import { testTls } from '../contract/tls_fixture.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { localEnvironment, until } from '../transport/local_environment.ts';

const token = 'a-token-for-tests-1';
const callers = [{ name: 'tests', token: [token, 'the-next-token-of-it'], singletons: ['counter'] }];

async function node(settings: ClusterSettings = { callers }): Promise<Cluster> {
  const system = ActorSystem.create('shop', { logger: localEnvironment().log });
  return await Cluster.join(system, settings);
}

function quiet(): {
  logger: ReturnType<typeof localEnvironment>['log'];
  lines: ReturnType<typeof localEnvironment>['lines'];
} {
  const { log, lines } = localEnvironment();
  return { logger: log, lines };
}

describe('Cluster.connect', () => {
  test('over a WebSocket: tells and asks, with the present and the next token, and closes', async () => {
    const cluster = await node();
    const journal = new Journal();
    const Counter = counterClass(journal);
    cluster.singleton.start(Counter);
    for (const one of callers[0]!.token) {
      const caller = await Cluster.connect(`ws://${cluster.address}`, {
        token: one,
        clusterName: 'shop',
        logger: quiet().logger,
      });
      const counter = caller.singleton.ref(Counter);
      counter.tell(1);
      assertEquals(await counter.ask('where'), cluster.address);
      assertEquals(caller.state, 'connected');
      await caller.close();
      assertEquals([caller.state, caller.ledger(Counter).acknowledged], ['closed', 2]);
    }
    assertEquals(journal.got, [1, 1]);
    await cluster.leave();
  });

  test('over TLS, where the certificate is one the caller trusts', async () => {
    const tls = testTls;
    const cluster = await node({ callers, host: 'localhost', tls, secret: 'a-secret-of-the-cluster' });
    cluster.singleton.start(counterClass(new Journal()));
    const url = `wss://${cluster.address}`;
    const trusting = await connect(url, { token, ca: tls.ca!, logger: quiet().logger });
    assertEquals(await trusting.singleton.ref('counter').ask('count'), 0);
    await trusting.close();
    await assertRejects(() => connect(url, { token, connectTimeoutMs: 700, logger: quiet().logger }), ConnectError);
    await cluster.leave();
  });

  test('refusals say why: a wrong token, another cluster, a node without callers, nobody there', async () => {
    const cluster = await node();
    const without = await node({});
    const port = without.address;
    const cases: [string, Partial<Parameters<typeof connect>[1]>, string][] = [
      [cluster.address, { token: 'some-other-token-entirely' }, 'token'],
      [cluster.address, { clusterName: 'market' }, 'cluster-name'],
    ];
    for (const [url, options, code] of cases) {
      const { logger, lines } = quiet();
      const error = await assertRejects(() => connect(url, { token, logger, ...options }), ConnectError);
      assertEquals([error.code, [...error.failures.values()][0]?.code], [code, code]);
      assertStringIncludes(error.message, cluster.address);
      assertFalse(JSON.stringify([error.message, lines]).includes(options.token ?? token));
    }
    const closed = await assertRejects(
      () => connect(port, { token, connectTimeoutMs: 500, logger: quiet().logger }),
      ConnectError,
    );
    assert(closed.failures.size === 1);
    await without.leave();
    const gone = await assertRejects(
      () => connect(port, { token, connectTimeoutMs: 500, logger: quiet().logger }),
      ConnectError,
    );
    assertEquals(gone.failures.size, 1);
    await cluster.leave();
  });

  test('one good address among bad ones is enough; a signal ends the attempt', async () => {
    const cluster = await node();
    const caller = await connect(['127.0.0.1:1', cluster.address, '127.0.0.1:2'], { token, logger: quiet().logger });
    assertEquals(caller.url, `ws://${cluster.address}${callerPath}`);
    await caller.close();
    await cluster.leave();
    const abort = new AbortController();
    const attempt = connect('127.0.0.1:1', { token, signal: abort.signal, logger: quiet().logger });
    abort.abort(new Error('never mind'));
    await assertRejects(() => attempt, Error, 'never mind');
  });

  test('a node that does not know the token is not believed, whatever it says', async () => {
    let socket: Socket | undefined;
    const got: Uint8Array[] = [];
    const listener = await runtime.listen({
      hostname: '127.0.0.1',
      port: 0,
      socketPath: callerPath,
      subprotocol: callerSubprotocol,
      maxFrameBytes: 1_000_000,
      fetch: () => new Response('', { status: 404 }),
      admit: () => true,
      onSocket(opened) {
        socket = opened;
        opened.onMessage = (bytes) => got.push(bytes);
        opened.onClose = () => {};
      },
      onLost: () => {},
    });
    const attempt = connect(`127.0.0.1:${listener.port}`, { token, connectTimeoutMs: 3_000, logger: quiet().logger });
    await until('hello', () => got.length === 1);
    // Its own hello, and a proof out of the air.
    socket!.send(Uint8Array.of(4, 0, 1, ...new Uint8Array(32)));
    await until('proof', () => got.length === 2);
    socket!.send(Uint8Array.of(2, ...new Uint8Array(32)));
    const error = await assertRejects(() => attempt, ConnectError);
    assertEquals(error.code, 'token');
    await listener.close();
  });

  test('a runtime that cannot listen may call and not join, and says so in one error', async () => {
    const { runtime: edge } = await import('../../adapters/edge/mod.ts');
    const system = ActorSystem.create('shop', { logger: localEnvironment().log });
    const joining = Cluster.join(system, { runtime: edge as Runtime });
    const error = await assertRejects(() => joining, Error);
    assertStringIncludes(error.message, 'Cluster.connect');
    assertFalse(system.extensions.has('cluster'));
    await system.terminate();
  });
});

describe('the options of connect', () => {
  test('addresses in every spelling', () => {
    const cases: [string, string | undefined][] = [
      ['10.0.0.1:4000', 'ws://10.0.0.1:4000/cluster/callers'],
      ['localhost:4000', 'ws://127.0.0.1:4000/cluster/callers'],
      ['[::1]:4000', 'ws://[::1]:4000/cluster/callers'],
      ['wss://a.example', 'wss://a.example/cluster/callers'],
      ['https://a.example:8443/', 'wss://a.example:8443/cluster/callers'],
      ['http://a.example/behind/a/proxy', 'ws://a.example/behind/a/proxy'],
      ['ftp://a.example', undefined],
      ['ws://user:pass@a.example', undefined],
      ['ws://a.example/?x=1', undefined],
      ['ws://a.example/#x', undefined],
      ['ws://a.example:0', undefined],
      ['not an address', undefined],
      ['', undefined],
    ];
    for (const [text, url] of cases) assertEquals(callerUrl(text), url, text);
  });

  test('each bad one is an error that names field and rule; neither token nor password is shown', () => {
    const cases: [unknown, unknown, string][] = [
      [[], { token }, 'urls'],
      ['ws://me:hunter2@h', { token }, 'urls'],
      [Array.from({ length: 65 }, () => 'h:1'), { token }, 'urls'],
      ['h:1', undefined, 'token'],
      ['h:1', { token: 'short-hunter2' }, 'token'],
      ['h:1', { token, bufferSize: -1 }, 'bufferSize'],
      ['h:1', { token, delivery: 'exactly-once' }, 'delivery'],
      ['h:1', { token, overflow: 'x' }, 'overflow'],
      ['h:1', { token, connectTimeoutMs: 0 }, 'connectTimeoutMs'],
      ['h:1', { token, ca: '/etc/ca.pem' }, 'ca'],
      ['h:1', { token, member: true }, 'member'],
    ];
    for (const [urls, options, field] of cases) {
      const error = assertThrows(() => checkConnect(urls as string, options as never), OptionsError);
      assertEquals(error.field, field);
      assertFalse(error.message.includes('hunter2'), error.message);
    }
    for (const none of [undefined, {}, { token: undefined }]) {
      assertMatch(assertThrows(() => checkConnect('h:1', none as never)).message, /got undefined$/);
    }
  });

  test('without TLS to another machine the log says what that means', async () => {
    const { logger, lines } = quiet();
    const dial = (_url: string, events: { failed(failure: never): void }) => {
      events.failed({ reason: 'rejected', code: 'token', detail: '' } as never);
      return () => {};
    };
    await assertRejects(() => connect('ws://a.example', { token, logger, dial: dial as never }), ConnectError);
    assert(lines.some(({ level, message }) => level === 'warn' && message.includes('without TLS')));
  });
});
