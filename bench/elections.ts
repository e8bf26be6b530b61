/**
 * What `moves.ts` measures, for an election by a lock: the two candidates and the sender are processes of one runtime, and
 * whoever holds the lock answers. The sender has a WebSocket to both and tells both, so that no time goes into finding
 * the new one. Holders renew three times in a term, as etcd3 does by itself.
 *
 *     elections.ts candidate KIND FOLDER PORT      KIND: redlock or etcd3, in FOLDER; PORT: of the store
 *     elections.ts sender PORT PORT                of the candidates
 */
import { runtime } from '#runtime';
import { GapSender } from './gap.ts';
import { type Loader, loaderOf } from './peer_libraries.ts';
import { dialRaw, listenRaw } from './raw_socket.ts';

const termMs = 10_000;
const name = 'bench';

/** Calls `held` with what has become of it, each time it changes. */
type Election = (load: Loader, port: string, held: (now: boolean) => void) => Promise<void>;

const elections: Readonly<Record<string, Election>> = {
  async redlock(load, port, held) {
    const redis = await load('ioredis');
    const redlock = await load('redlock');
    const client = new (redis.default ?? redis.Redis)({ host: '127.0.0.1', port: Number(port) });
    // It asks every 200 ms, its default, for ever.
    const locks = new redlock.default([client], { retryCount: -1 });
    const lock = await locks.lock(name, termMs);
    held(true);
    setInterval(() => lock.extend(termMs).catch(() => held(false)), termMs / 3);
  },
  async etcd3(load, port, held) {
    const { Etcd3 } = await load('etcd3');
    const campaign = new Etcd3({ hosts: `127.0.0.1:${port}` }).election(name, termMs / 1_000).campaign(runtime.name);
    campaign.on('error', () => held(false));
    await new Promise<void>((resolve) => campaign.on('elected', resolve));
    held(true);
  },
};

async function stand(kind: string, folder: string, storePort: string): Promise<void> {
  let holding = false;
  const port = await listenRaw(() => (frame, socket) => {
    if (holding) socket.send(frame);
  });
  console.log(`@candidate ${port}`);
  await elections[kind]!(loaderOf(folder), storePort, (now) => {
    if (now && !holding) console.log('@holding now');
    holding = now;
  });
}

async function send(ports: readonly string[]): Promise<void> {
  const sender = new GapSender();
  const sockets = await Promise.all(ports.map(async (port) => {
    const socket = await dialRaw(Number(port));
    socket.onMessage = (frame) => sender.onReply(new DataView(frame.buffer, frame.byteOffset).getUint32(0), port);
    return socket;
  }));
  const tell = (n: number): void => {
    const frame = new Uint8Array(4);
    new DataView(frame.buffer).setUint32(0, n);
    for (const socket of sockets) socket.send(frame);
  };
  await sender.run(tell, () => console.log('@started now'));
  console.log(`@gap ${JSON.stringify(sender.result)}`);
}

const [role, ...args] = runtime.args();
if (role === 'candidate') await stand(args[0]!, args[1]!, args[2]!);
else await send(args);
