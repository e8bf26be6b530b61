/**
 * The owner of a connection that may be open only once: a device that takes one client. Every node sends it commands through the
 * singleton; when the owner moves, the old one hangs up before the new one calls. Three nodes and the device in one process, for
 * the sake of the example:
 *
 *     bun run examples/connection_owner.ts
 *     deno run --allow-net examples/connection_owner.ts
 *     node examples/connection_owner.ts
 */
import { connect, createServer, type Socket } from 'node:net';
import { Actor, ActorSystem } from 'singlet';
import { Cluster, SingletonKey } from 'singlet/cluster';

/** It echoes lines, a little slowly, and counts how many clients it has at once. */
const device = { clients: 0, most: 0, calls: 0, lines: [] as string[] };
const server = createServer((socket) => {
  device.clients += 1;
  device.calls += 1;
  device.most = Math.max(device.most, device.clients);
  socket.on('data', (data) => {
    device.lines.push(...String(data).trim().split('\n'));
    setTimeout(() => socket.write(data), 2);
  });
  socket.on('error', () => {});
  socket.on('close', () => device.clients -= 1);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };

interface Send {
  readonly line: string;
}

class DeviceOwner extends Actor<Send> {
  static readonly singleton = SingletonKey.of<Send>('device-owner');
  #socket: Socket | undefined;

  /** A throw here makes the start fail, and it is tried again after a while: so is a device that does not answer. */
  override preStart(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve());
      socket.on('error', reject);
      this.#socket = socket;
    });
  }

  /** The next message waits until this one has its answer: the device hears one command at a time. */
  override async onReceive({ line }: Send): Promise<void> {
    const answer = new Promise<string>((resolve) => this.#socket!.once('data', (data) => resolve(String(data).trim())));
    this.#socket!.write(`${line}\n`);
    const text = await answer;
    if (this.context.hasSender) this.context.sender.tell({ text });
  }

  /** The hand-over waits for this, so that the next owner finds the line free. */
  override postStop(): Promise<void> {
    return new Promise((resolve) => {
      this.#socket!.once('close', () => resolve());
      this.#socket!.end();
    });
  }
}

const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('example', { logLevel: 'error' });
  clusters.push(await Cluster.join(system, { seeds: clusters.slice(0, 1).map((first) => first.address) }));
}
const owners = clusters.map((cluster) => cluster.singleton.start(DeviceOwner));

const sent: string[] = [];
const answers: Promise<{ text: string }>[] = [];
const send = (from: number, count: number) => {
  for (let n = 0; n < count; n += 1) {
    const line = `${from}-${sent.length}`;
    sent.push(line);
    answers.push(owners[from]!.ask<{ text: string }>({ line }, 20_000));
  }
};
send(1, 100);
send(2, 100);
await answers[20];
const leaving = clusters[0]!.leave(); // the owner moves in the middle of it
send(1, 100);
send(2, 100);
await leaving;
const texts = (await Promise.all(answers)).map(({ text }) => text);
console.log(
  'answered:',
  texts.every((text, index) => text === sent[index]),
  'calls:',
  device.calls,
  'at once:',
  device.most,
);
console.log('each line once:', device.lines.length === sent.length && new Set(device.lines).size === sent.length);

for (const cluster of clusters) await cluster.system.terminate();
server.close();
