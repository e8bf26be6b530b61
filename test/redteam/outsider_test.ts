/**
 * Somebody who can reach the port of a node and has neither the secret nor the token: what each attempt comes to. One real
 * node stands against all of them; after each it is alive, alone in its cluster, and has logged no error.
 */
import { connect, createServer, type Socket as TcpSocket } from 'node:net';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { after, before, describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertRejects, assertStringIncludes } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster, ClusterOptions } from '../../src/facade/mod.ts';
import { limits } from '../../src/limits.ts';
import { isLink, type Link, type LinkClose } from '../../src/transport/contract.ts';
import { encodeProof } from '../../src/transport/hello.ts';
import { rawClient, upgradeRequest } from '../contract/raw_peer.ts';
import {
  close,
  dropped,
  hello,
  proxyTo,
  raw,
  recordHandshake,
  reflected,
  secret,
  type Stand,
  stand,
  statusOf,
  token,
  transportOf,
} from './outsider.ts';
import { localEnvironment, pause, until } from '../transport/local_environment.ts';

const reached: unknown[] = [];
class Target extends Actor<unknown> {
  override onReceive(message: unknown): void {
    reached.push(message);
  }
}

let node: Stand;
/** Upgrades, sends these binary frames, and waits until the node closes the connection. */
/** Whether one of these unmasked frames is a close; the node then waits a second for the answer that never comes. */
/** Sends bytes as they are and gives what comes back until the end, or for `ms`. */

async function ask(path: string, init: RequestInit = {}, base = node.url): Promise<{ status: number; text: string }> {
  const response = await fetch(`${base}${path}`, { redirect: 'manual', ...init });
  return { status: response.status, text: await response.text() };
}

interface Attack {
  readonly name: string;
  readonly run: () => Promise<void>;
}

const handshakes: readonly Attack[] = [
  {
    name: 'a guessed proof is refused, and frames behind it reach nobody',
    run: () => dropped(node.port, hello(), encodeProof(new Uint8Array(32)), Uint8Array.of(0x53, 1, 1, 0, 0x85, 1)),
  },
  {
    name: 'messages before the handshake reach nobody',
    run: () => dropped(node.port, Uint8Array.of(0x53, 1, 1, 0, 0x82, 1, 0x66, 0x2f, 0x75, 0x73, 0x65, 0x72, 0x2f)),
  },
  {
    name: 'a recorded handshake is worth nothing the second time',
    run: async () => {
      const recorded = await recordHandshake(node.port);
      assert(recorded.length >= 2);
      await dropped(node.port, ...recorded);
    },
  },
  {
    name: "the node's own frames sent back to it are refused",
    run: () => reflected(node.port),
  },
  {
    name: 'a stranger that claims to have no secret is refused',
    run: () => dropped(node.port, hello({ secured: false }), encodeProof(new Uint8Array(32))),
  },
  {
    name: 'another protocol version is refused in both directions of age',
    run: async () => {
      for (const version of [0, 2, 0xffff]) {
        const bytes = hello();
        new DataView(bytes.buffer).setUint16(1, version);
        await dropped(node.port, bytes);
      }
    },
  },
  {
    name: "a stranger that claims the node's own address or uid is refused",
    run: async () => {
      await dropped(node.port, hello({ address: node.cluster.address }));
      await dropped(node.port, hello({ uid: node.cluster.uid }));
    },
  },
  {
    name: 'a stranger of another cluster is refused',
    run: () => dropped(node.port, hello({ clusterName: 'blue' })),
  },
  {
    name: 'hellos whose lengths lie are refused',
    run: async () => {
      const bytes = hello();
      for (const at of [5, 6, bytes.length - 34, bytes.length - 33]) {
        const lying = Uint8Array.from(bytes);
        lying[at] = 0xff;
        await dropped(node.port, lying);
      }
      await dropped(node.port, bytes.slice(0, 20));
      await dropped(node.port, new Uint8Array(17_000));
    },
  },
  {
    name: 'a flood of frames before the handshake is over ends that connection',
    run: () => dropped(node.port, hello(), ...Array.from({ length: 2_000 }, () => encodeProof(new Uint8Array(32)))),
  },
  {
    name: 'broken WebSocket frames end that connection only',
    run: async () => {
      const breaks = [
        Uint8Array.of(0xc2, 0x80, 0, 0, 0, 0),
        Uint8Array.of(0x83, 0x80, 0, 0, 0, 0),
        Uint8Array.of(0x82, 0x02, 1, 1),
        Uint8Array.of(0x89, 0xfe, 1, 0, 0, 0, 0, 0),
        Uint8Array.of(0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0),
      ];
      for (const bytes of breaks) {
        const client = await rawClient(node.port);
        client.socket.on('error', () => {});
        client.socket.write(bytes);
        await until('it is dropped', () => client.closed(), 10_000).finally(() => client.socket.destroy());
      }
    },
  },
  {
    name: 'FB-089: compression is never agreed on, so nothing can be inflated',
    run: async () => {
      const offer = upgradeRequest('/cluster/ws', 'singlet.v1', 'Sec-WebSocket-Extensions: permessage-deflate\r\n');
      const client = await rawClient(node.port, offer);
      client.socket.destroy();
      assertStringIncludes(client.answer, '101');
      assertFalse(/sec-websocket-extensions/i.test(client.answer));
    },
  },
  {
    name: 'an upgrade for another subprotocol, or for a path beside it, gets no socket',
    run: async () => {
      for (
        const request of [upgradeRequest('/cluster/ws', 'chat'), upgradeRequest('/cluster/ws/'), upgradeRequest('/')]
      ) {
        assertFalse((await raw(node.port, request, 400)).startsWith('HTTP/1.1 101'));
      }
    },
  },
  {
    name: 'R113: more connections than there is room for: the newest are refused, HTTP goes on, the room comes back',
    run: async () => {
      const sockets: TcpSocket[] = [];
      const one = async () => {
        const client = await rawClient(node.port);
        client.socket.on('error', () => {});
        sockets.push(client.socket);
      };
      for (let round = 0; round < 11; round++) await Promise.all(Array.from({ length: 100 }, one));
      // Those that were let in together with the last ones are closed right after their upgrade.
      const excess = 1_100 - limits.inboundConnections;
      await untilMetric('singlet_connections_total{what="inboundRefused"}', (refused) => refused >= excess);
      assertEquals((await ask('/alive')).status, 200);
      for (const socket of sockets) socket.destroy();
      await untilMetric('singlet_connections', (open) => open === 0);
      await dropped(node.port, Uint8Array.of(9));
    },
  },
];

const requests: readonly Attack[] = [
  {
    name: 'operations without the token, with a wrong one, and with the token anywhere but in its header',
    run: async () => {
      const headers: Record<string, string>[] = [
        {},
        { authorization: '' },
        { authorization: 'Bearer' },
        { authorization: 'Bearer ' },
        { authorization: `Basic ${btoa(`x:${token}`)}` },
        { authorization: token },
        { authorization: `Bearer ${token.slice(0, -1)}` },
        { authorization: `Bearer ${token}x` },
        { authorization: `Bearer ${token.toUpperCase()}` },
        { authorization: `Bearer ${'x'.repeat(6_000)}` },
        { authorization: `Bearer wrong, Bearer ${token}` },
        { cookie: `authorization=Bearer ${token}` },
        { 'x-authorization': `Bearer ${token}` },
      ];
      for (const path of ['/cluster/leave', '/cluster/down', '/cluster/singletons/x/move']) {
        for (const each of headers) {
          assertEquals((await ask(path, { method: 'POST', headers: each })).status, 401, JSON.stringify(each));
        }
        assertEquals((await ask(`${path}?token=${token}`, { method: 'POST' })).status, 401);
      }
    },
  },
  {
    name: 'other spellings of an operation are not that operation',
    run: async () => {
      const spellings = [
        '/cluster/leave/',
        '//cluster/leave',
        '/cluster//leave',
        '/cluster/./leave',
        '/alive/../cluster/leave',
        '/CLUSTER/LEAVE',
        '/cluster/leave%2f',
        '/cluster%2fleave',
        '/%63luster/leave',
        '/cluster/leave;x=1',
        '/cluster/leave%00',
        '/cluster/leave?x=1#y',
        '/cluster\\leave',
        '/alive/%2e%2e/cluster/leave',
      ];
      for (const path of spellings) {
        const answer = await raw(
          node.port,
          `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
        );
        assert([400, 401, 404, 405].includes(statusOf(answer)), `${path}: ${answer.slice(0, 80)}`);
      }
    },
  },
  {
    name: 'another method, or a header that claims another one, is no way around',
    run: async () => {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const { status } = await ask('/cluster/leave', { method, headers: { 'x-http-method-override': 'POST' } });
        assertEquals(status, 405, method);
      }
      const trace = await raw(
        node.port,
        'TRACE / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-header\r\n\r\n',
        300,
      );
      assertFalse(trace.includes('secret-header'));
    },
  },
  {
    name: 'requests whose lengths contradict each other are answered once, or not at all',
    run: async () => {
      const smuggled = 'POST /cluster/leave HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';
      const attempts = [
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 60\r\n\r\n${smuggled}`,
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n${smuggled}`,
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n${smuggled}`,
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n${smuggled}`,
      ];
      for (const attempt of attempts) {
        const answer = await raw(node.port, attempt, 700);
        assertFalse(answer.includes('HTTP/1.1 202'), answer);
      }
    },
  },
  {
    name: 'bodies without end and bodies that lie about their length are cut off',
    run: async () => {
      const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
      const head = `POST /cluster/down HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
      const endless = await raw(node.port, [
        `${head}Transfer-Encoding: chunked\r\n\r\n`,
        ...Array.from({ length: 40 }, () => chunk),
      ], 5_000);
      assertEquals(statusOf(endless), 413);
      assertEquals(statusOf(await raw(node.port, `${head}Content-Length: 900000000\r\n\r\n{`, 3_000)), 413);
    },
  },
  {
    name: 'a body in as many pieces as it has bytes is cut off before reading it keeps the node from anything else',
    run: async () => {
      const head = `POST /cluster/down HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
      const parts = [`${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\nx\r\n'.repeat(60_000), '0\r\n\r\n'];
      const before = process.cpuUsage();
      const [answer] = await Promise.all([raw(node.port, parts, 3_000), ask('/alive')]);
      const { user, system } = process.cpuUsage(before);
      assert([0, 400, 413].includes(statusOf(answer)), answer);
      assert((user + system) / 1_000 < 1_500, `${(user + system) / 1_000} ms of the processor`);
    },
  },
  {
    name: 'FB-096: bodies that break off are nothing to raise an error for',
    run: async () => {
      const head =
        `POST /cluster/down HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 500\r\n\r\n{`;
      await Promise.all(Array.from({ length: 60 }, () => raw(node.port, head, 60)));
    },
  },
  {
    name: 'keys that pollute prototypes are unknown fields like any other',
    run: async () => {
      const headers = { authorization: `Bearer ${token}` };
      for (
        const body of [
          '{"__proto__":{"polluted":1}}',
          '{"constructor":{"prototype":{"polluted":1}}}',
          '[]',
          '"x"',
          '1e999',
        ]
      ) {
        assertEquals((await ask('/cluster/down', { method: 'POST', headers, body })).status, 400);
      }
      assertFalse('polluted' in ({} as object));
    },
  },
  {
    name: 'JSON as deep as it fits is refused, not recursed into',
    run: async () => {
      const body = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
      const headers = { authorization: `Bearer ${token}` };
      assertEquals((await ask('/cluster/down', { method: 'POST', headers, body })).status, 400);
    },
  },
  {
    name: 'an answer is never the page of a script: what a path says comes back as JSON',
    run: async () => {
      const response = await fetch(`${node.url}/cluster/singletons/%3Cscript%3Ealert(1)%3C%2Fscript%3E`);
      assertEquals(response.status, 404);
      assertStringIncludes(response.headers.get('content-type') ?? '', 'application/json');
      await response.text();
    },
  },
  {
    name: 'requests that are no HTTP, hosts that are none, and heads without end get an end',
    run: async () => {
      const attempts = [
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
        'GET / HTTP/1.1\r\nHost: a b\r\n\r\n',
        'GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n',
        'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
        `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: x\r\n${'X-A: b\r\n'.repeat(20_000)}\r\n`,
      ];
      const answers = await Promise.all(attempts.map((attempt) => raw(node.port, attempt, 700)));
      for (const answer of answers) assertFalse(statusOf(answer) >= 500, answer);
    },
  },
  {
    name: 'requests that never end hold nobody up',
    run: async () => {
      const slow = Array.from({ length: 200 }, () => {
        const socket = connect({ host: '127.0.0.1', port: node.port });
        socket.on('error', () => {});
        socket.write('POST /cluster/down HTTP/1.1\r\nHost: x\r\nX-Slow: ');
        return socket;
      });
      const began = performance.now();
      assertEquals((await ask('/alive')).status, 200);
      assert(performance.now() - began < 5_000);
      for (const socket of slow) socket.destroy();
    },
  },
  {
    name: 'readers of events beyond the limit are turned away',
    run: async () => {
      const stop = new AbortController();
      const readers = await Promise.all(
        Array.from(
          { length: limits.httpEventClients },
          () => fetch(`${node.url}/cluster/events`, { signal: stop.signal }),
        ),
      );
      const { status } = await ask('/cluster/events');
      stop.abort();
      await Promise.all(readers.map((reader) => reader.body?.cancel().catch(() => {})));
      assertEquals(status, 503);
    },
  },
];

async function untilMetric(name: string, holds: (value: number) => boolean): Promise<void> {
  const end = performance.now() + 15_000;
  for (;;) {
    const { text } = await ask('/metrics');
    const line = text.split('\n').find((each) => each.startsWith(`${name} `));
    if (holds(Number(line?.split(' ').at(-1)))) return;
    if (performance.now() > end) throw new Error(`${name} did not change in time: ${line}`);
    await pause(50);
  }
}

describe('red team: an outsider', () => {
  before(async () => {
    node = await stand();
    node.system.spawn(() => new Target(), 'target');
  });
  after(() => close(node));

  for (const attack of [...handshakes, ...requests]) {
    test(`S7: ${attack.name}`, { timeout: 60_000 }, async () => {
      await attack.run();
      assertEquals((await ask('/alive')).status, 200);
      assertEquals(node.cluster.getMembers().length, 1);
      assertEquals(node.cluster.selfMember.status, 'up');
      assertEquals(reached, []);
      assertEquals(node.environment.lines.filter(({ level }) => level === 'error'), []);
    });
  }
});

describe('red team: what a node gives away', () => {
  test('FB-103: with reads behind the token nothing names a member', async () => {
    const shy = await stand((options) => options.withReads('token'));
    for (const path of ['/cluster/members', '/cluster/leader', '/cluster/singletons', '/cluster/events', '/metrics']) {
      const { status, text } = await ask(path, {}, shy.url);
      assertEquals(status, 401, path);
      assertFalse(text.includes(String(shy.port)));
    }
    for (const path of ['/alive', '/ready']) assertFalse((await ask(path, {}, shy.url)).text.includes('127.0.0.1'));
    await close(shy);
  });

  test('without a token operations are off', async () => {
    const environment = localEnvironment();
    const system = ActorSystem.create('red', { environment, logger: environment.log });
    const cluster = await Cluster.join(system, ClusterOptions.create().withSecret(secret));
    const base = `http://${cluster.address}`;
    const headerSets: Record<string, string>[] = [{}, { authorization: 'Bearer undefined' }, {
      authorization: 'Bearer ',
    }];
    for (const headers of headerSets) {
      assertEquals((await ask('/cluster/leave', { method: 'POST', headers }, base)).status, 403);
    }
    await cluster.leave();
    await system.terminate();
  });
});

describe('red team: hostile seeds', () => {
  const answers: Record<string, (socket: TcpSocket) => void> = {
    'never ends its answer': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
      const chunk = `8000\r\n${'"'.repeat(32_768)}\r\n`;
      const pour = () => {
        while (!socket.destroyed && socket.write(chunk)) { /* until it is full */ }
      };
      socket.on('drain', pour);
      pour();
    },
    'answers in as many pieces as bytes': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
      socket.write('1\r\n \r\n'.repeat(200_000));
    },
    'redirects to somewhere else': (socket) =>
      socket.end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/cluster/seed\r\nContent-Length: 0\r\n\r\n'),
    'says nothing': () => {},
    'answers with prototypes': (socket) => {
      const body = '{"__proto__":{"clusterName":"red","protocol":1},"constructor":{}}';
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    },
    'lists a hundred thousand members': (socket) => {
      const members = Array.from({ length: 10_000 }, (_, i) => `h${i}:1`);
      const body = JSON.stringify({
        clusterName: 'red',
        protocol: 1,
        fingerprint: '',
        address: 'h:1',
        uid: 'u',
        members,
      });
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    },
  };
  for (const [what, answer] of Object.entries(answers)) {
    test(`S7: a seed that ${what} is explained, and nothing more`, { timeout: 60_000 }, async () => {
      const sockets: TcpSocket[] = [];
      const server = createServer((socket) => {
        sockets.push(socket);
        socket.on('error', () => {});
        socket.once('data', () => answer(socket));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const seed = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const environment = localEnvironment();
      const system = ActorSystem.create('red', { environment, logger: environment.log });
      const options = ClusterOptions.create().withSecret(secret).withSeeds(seed).withJoinTimeoutMs(800);
      const error = await assertRejects(() => Cluster.join(system, options)) as Error;
      assertStringIncludes(error.message, seed);
      assertEquals(environment.lines.filter(({ level }) => level === 'error'), []);
      for (const socket of sockets) socket.destroy();
      server.close();
      await system.terminate();
    });
  }
});

describe('red team: somebody on the path', () => {
  for (const frameIntegrity of [true, false]) {
    const what = frameIntegrity
      ? 'costs the sealed link, and is not believed'
      : 'is believed where nothing seals the frames';
    test(`S7: a byte changed after the handshake ${what}`, { timeout: 60_000 }, async () => {
      const heard: number[] = [];
      const closes: LinkClose[] = [];
      const far = transportOf('far', frameIntegrity);
      const address = await far.start({
        accepted: (link) => link.send(Uint8Array.of(1, 1, 1)),
        frame: (link) => link.send(Uint8Array.of(2, 2, 2)),
        closed() {},
        listenerLost() {},
      });
      const near = transportOf('near', frameIntegrity);
      await near.start({
        accepted() {},
        frame: (_link, bytes) => void heard.push(bytes.at(-1) ?? -1),
        closed: (_link, close) => void closes.push(close),
        listenerLost() {},
      });
      const tamper = { on: false };
      const proxy = await proxyTo(Number(address.split(':').at(-1)), tamper);
      const link = await new Promise<Link>((resolve, reject) => {
        near.dial(`127.0.0.1:${proxy.port}`, (outcome) => isLink(outcome) ? resolve(outcome) : reject(outcome.detail));
      });
      await until('the greeting', () => heard.length === 1);
      tamper.on = true;
      link.send(Uint8Array.of(9));
      await until('the changed frame', () => heard.length + closes.length === 2);
      if (frameIntegrity) {
        assertEquals([heard, closes[0]?.clean, near.counters.forgedFrames], [[1], false, 1]);
      } else {
        assertEquals([heard, closes.length], [[1, 3], 0]);
      }
      tamper.on = false;
      await Promise.all([near.stop(), far.stop()]);
      proxy.close();
    });
  }
});
