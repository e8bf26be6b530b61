/** A peer that stops reading: what it costs the sender, and what becomes of the messages. */
import { connect, createServer, type Socket as TcpSocket } from 'node:net';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { LinkedPeers } from '../../src/transport/peers.ts';
import { Codec } from '../../src/wire/codec.ts';
import type { Envelope } from '../../src/wire/frames.ts';
import { localEnvironment, pause, until } from '../transport/local_environment.ts';
import { transportOf } from './outsider.ts';

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Hands bytes on in both directions, until it is told to hold back those to the listener. */
async function valve(target: number) {
  const sockets: TcpSocket[] = [];
  const state = { shut: false };
  const valves: (() => unknown)[] = [];
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target });
    sockets.push(near, far);
    for (const socket of [near, far]) socket.on('error', () => {});
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
    near.pipe(far);
    far.pipe(near);
    valves.push(() => state.shut ? near.unpipe(far).pause() : near.pipe(far));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    turn(shut: boolean) {
      state.shut = shut;
      for (const each of valves) each();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test(
  'S7, FB-083, FB-087: a peer that does not read costs bounded memory, every message is accounted for, system messages pass first',
  {
    timeout: 120_000,
  },
  async () => {
    const port = await freePort();
    const gate = await valve(port);
    const got: number[] = [];
    const system: number[] = [];
    const undeliverable: Envelope[] = [];
    const peersOf = (uid: string, message: (envelope: Envelope) => void, more = {}) => {
      const environment = localEnvironment();
      const events = {
        connected() {},
        disconnected() {},
        dialFailed() {},
        message: (_peer: unknown, envelope: Envelope) => message(envelope),
        listenerLost() {},
      };
      return new LinkedPeers({
        environment,
        transport: transportOf(uid, true, more),
        codec: new Codec(),
        uid,
        events,
        onUndeliverable: (_address, envelope) => void undeliverable.push(envelope),
      });
    };
    const reader = peersOf('reader', (envelope) => {
      if (envelope[0] === 1) got.push(envelope[1] as number);
      else system.push(got.length);
    }, { port, advertisedPort: gate.port });
    const writer = peersOf('writer', () => {});
    await reader.start();
    const address = reader.address;
    assertEquals(address, `127.0.0.1:${gate.port}`);
    await writer.start();
    writer.sendUser(address, [1, 0, '']);
    await until('they are linked', () => got.length === 1, 20_000);

    gate.turn(true);
    const text = 'x'.repeat(8_000);
    const before = process.memoryUsage().rss;
    const told = [0];
    let refused = 0;
    for (let n = 1; n <= 40_000; n++) {
      if (writer.sendUser(address, [1, n, text]) === undefined) told.push(n);
      else refused++;
      if (n % 500 === 0) await pause(1);
    }
    const grown = process.memoryUsage().rss - before;
    assert(refused > 20_000, `${refused} refused`);
    assert(told.length * text.length < limits.peerQueueBytes + 40 * 2 ** 20, `${told.length} taken`);
    assert(grown < 400 * 2 ** 20, `${Math.round(grown / 2 ** 20)} MiB`);
    assert(writer.congested(address));
    writer.sendSystem(address, [10, 7]);

    gate.turn(false);
    await until('all that was taken has arrived', () => got.length === told.length, 60_000);
    assertEquals(got, told);
    assertEquals(undeliverable.length, 0);
    assert(system[0]! < told.length, 'the system message did not wait for all user messages');
    await Promise.all([writer.stop(), reader.stop()]);
    gate.close();
  },
);
