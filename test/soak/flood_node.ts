/**
 * The parts of the load test, one per process:
 *
 *     sink      a node with an actor that counts numbered messages
 *     sender    a member that tells the actor so many of them a second
 *     idle      peers that prove themselves, are taken into use, and say nothing more
 *
 * Each prints a line of a node when it is ready, then answers `stats` on its input with `@stats JSON`; `stop` is answered
 * likewise, and the sender tells nothing more. It ends with its parent.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { runtime } from '#runtime';
import { nodeLogger } from '../../node/node_log.ts';
import { realEnvironment } from '../../src/actor/real_environment.ts';
import { Cluster } from '../../src/facade/mod.ts';
import { Actor, type ActorRef, ActorSystem } from '../../src/mod.ts';
import { LinkedPeers } from '../../src/transport/peers.ts';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { Codec } from '../../src/wire/codec.ts';

export const secret = 'the secret of the load test';
/** Messages that may be on their way; the sender waits above it. */
const windowMessages = 60_000;

const { values } = parseArgs({
  args: [...runtime.args()],
  options: {
    part: { type: 'string' },
    seed: { type: 'string', default: '' },
    rate: { type: 'string', default: '0' },
    count: { type: 'string', default: '0' },
  },
});

interface Numbered {
  readonly n: number;
  readonly text: string;
}

const counts = { received: 0, lost: 0, doubled: 0, sent: 0, links: 0, ended: 0 };

class Sink extends Actor<Numbered | 'count'> {
  #next = 1;
  override onReceive(message: Numbered | 'count'): void {
    if (message === 'count') return this.context.sender.tell(counts.received);
    counts.received++;
    if (message.n > this.#next) counts.lost += message.n - this.#next;
    else if (message.n < this.#next) counts.doubled++;
    this.#next = Math.max(this.#next, message.n + 1);
  }
}

function memory() {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc(force: boolean): void } };
  if (Bun !== undefined) Bun.gc(true);
  else gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return { rss, heap: heapUsed, external, cpuMs: (user + system) / 1_000 };
}

async function node(): Promise<{ system: ActorSystem; cluster: Cluster }> {
  const system = ActorSystem.create('load', { logger: nodeLogger('warn') });
  const seeds = values.seed === '' ? [] : [values.seed];
  // What is measured is memory and loss; a machine that is busy elsewhere is not to part the two nodes.
  const failureDetector = { unreachableAfterMs: 30_000 };
  return { system, cluster: await Cluster.join(system, { secret, seeds, name: 'load', failureDetector }) };
}

/** What the node says of itself. */
let metrics = () => Promise.resolve('');

async function troubles(): Promise<{ disconnects: number; deadLetters: number }> {
  const lines = (await metrics()).split('\n');
  const sum = (start: string) =>
    lines.filter((line) => line.startsWith(start)).reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
  return {
    disconnects: sum('singlet_links_total{what="disconnects"}'),
    deadLetters: sum('singlet_dead_letters_total'),
  };
}

/** Tells from now on; what it returns ends that. */
function send(sink: ActorRef<Numbered | 'count'>, rate: number): () => void {
  const text = 'x'.repeat(64);
  let [acknowledged, last, owed] = [0, performance.now(), 0];
  const look = () => {
    sink.ask<number>('count', 30_000).then((count) => acknowledged = count, () => {}).finally(() =>
      setTimeout(look, 20)
    );
  };
  look();
  const telling = setInterval(() => {
    const now = performance.now();
    owed += (now - last) * rate / 1_000;
    last = now;
    if (counts.sent - acknowledged > windowMessages) owed = 0;
    for (; owed >= 1; owed--) sink.tell({ n: ++counts.sent, text });
  }, 2);
  return () => clearInterval(telling);
}

async function idle(count: number): Promise<void> {
  const environment = realEnvironment();
  const seedAnswer = () => {
    throw new Error('it does not listen');
  };
  for (let i = 0; i < count; i++) {
    const uid = `idle-${i}-${Math.random().toString(36).slice(2)}`;
    const host = `127.1.${i >> 8}.${i & 255}`;
    const options = {
      runtime,
      environment,
      clusterName: 'load',
      host,
      port: 0,
      uid,
      secret,
      seedAnswer,
      listen: false,
    };
    const peers = new LinkedPeers({
      environment,
      transport: new WebSocketTransport(options),
      codec: new Codec(),
      uid,
      events: {
        connected: () => void counts.links++,
        disconnected: () => void counts.ended++,
        dialFailed: () => {},
        message: () => {},
        listenerLost: () => {},
      },
    });
    await peers.start();
    peers.connect(values.seed);
    if (i % 20 === 19) await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function main(): Promise<void> {
  let address = '-';
  let stop = () => {};
  if (values.part === 'idle') await idle(Number(values.count));
  else {
    const { system, cluster } = await node();
    address = cluster.address;
    metrics = async () => await (await cluster.fetch(new Request('http://node/metrics'))).text();
    if (values.part === 'sink') system.spawn(() => new Sink(), 'sink');
    else {
      const { uid } = cluster.getMembers().find((member) => member.address === values.seed)!;
      stop = send(
        system.refProvider.resolve(`singlet://${uid}@${values.seed}/user/sink`) as ActorRef<Numbered | 'count'>,
        Number(values.rate),
      );
    }
  }
  const answer = async (verb: string) => {
    if (verb === 'stop') stop();
    const { disconnects, deadLetters } = await troubles();
    console.log(`@${verb} ${JSON.stringify({ ...counts, ...memory(), disconnects, deadLetters })}`);
  };
  const input = createInterface({ input: process.stdin });
  input.on('close', () => runtime.exit(2));
  input.on('line', (verb) => void answer(verb));
  console.log(`node ${address} uid - on ${runtime.name} ${runtime.version}, http://${address}/`);
}

await main();
