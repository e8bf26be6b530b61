/**
 * Between two processes on loopback, through a singleton ref: acknowledged and accounted, authenticated with a secret. The
 * raw limit is a WebSocket of the same runtime in the same two processes.
 *
 *     remote.ts host            prints its address, serves until killed
 *     remote.ts sender ADDRESS RAW_PORT
 */
import { runtime } from '#runtime';
import { Actor, type ActorRef, ActorSystem } from '../src/mod.ts';
import { Cluster, SingletonKey } from '../src/facade/mod.ts';
import type { Socket } from '../src/transport/runtime.ts';
import { dialRaw, listenRaw } from './raw_socket.ts';
import { check, emit, median, now, percentile, repeat, type Row } from './measure.ts';

const secret = 'a secret for the benchmark';
const runs = 5;
type Message = { readonly n: number; readonly text?: string; readonly bytes?: Uint8Array } | 'count' | 'plain';
type Target = ActorRef<Message>;

class Sink extends Actor<Message> {
  static readonly singleton: SingletonKey<Message> = SingletonKey.of('sink');
  count = 0;
  override onReceive(message: Message): void {
    if (message === 'count') this.context.sender.tell(this.count);
    else if (message === 'plain') this.context.sender.tell(this.context.system.spawnAnonymous(() => new Sink()));
    else {
      this.count += 1;
      if (message.n < 0) this.context.sender.tell(message.n);
    }
  }
}

const [role, seed, rawPort] = runtime.args();
const system = ActorSystem.create('bench', { logLevel: 'error' });
const cluster = await Cluster.join(system, { secret, seeds: role === 'host' ? [] : [seed!] });
const ref = cluster.singleton.start(Sink);

if (role === 'host') await serve();
else await send(Number(rawPort));

async function serve(): Promise<void> {
  const port = await listenRaw(() => {
    let frames = 0;
    return (bytes, socket) => {
      frames += 1;
      // One byte asks for an echo, two for the count.
      if (bytes.length === 1) socket.send(bytes);
      if (bytes.length === 2) {
        socket.send(new TextEncoder().encode(String(frames - 1)));
        frames = 0;
      }
    };
  });
  console.log(`@host ${cluster.address} ${port}`);
}

function reply(socket: Socket, frame: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve) => {
    socket.onMessage = resolve;
    socket.send(frame);
  });
}

/** Frames of one size as fast as the socket takes them; verified by count. */
async function rawFrames(socket: Socket, size: number, total: number): Promise<number> {
  const frame = new Uint8Array(size);
  const began = now();
  for (let n = 0; n < total; n += 1) {
    socket.send(frame);
    while (socket.bufferedBytes() > 4 * 2 ** 20) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const counted = Number(new TextDecoder().decode(await reply(socket, new Uint8Array(2))));
  check(counted, total, 'raw frames');
  return total / (now() - began) * 1_000;
}

async function tells(total: number, chunk: number, message: () => Message, to: Target = ref): Promise<number> {
  const before = await to.ask<number>('count');
  const began = now();
  for (let n = 0; n < total; n += chunk) {
    for (let k = 0; k < chunk; k += 1) to.tell(message());
    await to.ask('count', 60_000);
  }
  const elapsed = now() - began;
  check(await to.ask<number>('count') - before, total, 'remote tells');
  return total / elapsed * 1_000;
}

/**
 * What numbering, acknowledging, filtering and gating cost: the same messages to an ordinary actor of the same class on the
 * same node, through a plain remote ref, which knows nothing of all that. Pairs of runs, one right after the other.
 */
async function accountingCost(message: () => Message, limit: Row['limit']): Promise<void> {
  const plain = await ref.ask<Target>('plain');
  const costs: number[] = [];
  const plainly: number[] = [];
  for (let run = 0; run < runs + 2; run += 1) {
    const [first, second] = run % 2 === 0 ? [plain, ref] : [ref, plain];
    const rates = [await tells(200_000, 20_000, message, first), await tells(200_000, 20_000, message, second)];
    const [without, accounted] = run % 2 === 0 ? [rates[0]!, rates[1]!] : [rates[1]!, rates[0]!];
    plainly.push(without);
    costs.push((without - accounted) / without * 100);
  }
  const spreadOf = (values: number[]) => [Math.min(...values), Math.max(...values)] as const;
  emit({
    what: 'remote tell 100 B to an ordinary actor',
    unit: 'msg/s',
    value: median(plainly),
    spread: spreadOf(plainly),
    ...(limit === undefined ? {} : { limit }),
  });
  emit({ what: 'accounting cost', unit: '%', value: median(costs), spread: spreadOf(costs) });
}

async function latencies(count: number, once: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const began = now();
    await once();
    times.push((now() - began) * 1_000);
  }
  return times;
}

/**
 * A kernel puts the two processes on one core or on two as it likes, and changes its mind: a ping then takes 10 µs or 90.
 * So raw pings and asks take turns in short blocks, and each block of asks is compared with the pings right before it.
 */
async function pingsAndAsks(socket: Socket): Promise<void> {
  const [blocks, size] = [100, 50];
  const pings: number[] = [];
  const asks: number[] = [];
  const ratios: number[] = [];
  for (let block = -10; block < blocks; block += 1) {
    const raw = await latencies(size, () => reply(socket, new Uint8Array(1)));
    const asked = await latencies(size, () => ref.ask({ n: -1 }));
    if (block < 0) continue;
    pings.push(...raw);
    asks.push(...asked);
    ratios.push(median(asked) / median(raw));
  }
  const row = (what: string, unit: string, values: number[]): Row => {
    return { what, unit, value: median(values), spread: [percentile(values, 0.1), percentile(values, 0.99)] };
  };
  emit({ ...row('raw ping-pong p50 (spread: p10, p99)', 'µs', pings), context: true });
  emit({ ...row('remote ask p50 (spread: p10, p99)', 'µs', asks), context: true });
  emit(row('remote ask in raw ping-pongs, block by block (spread: p10, p99)', '×', ratios));
}

async function send(port: number): Promise<void> {
  await ref.ask('count');
  const socket = await dialRaw(port);
  const frames = await repeat(
    'raw WebSocket, one 100 B frame a message',
    'frames/s',
    runs,
    () => rawFrames(socket, 100, 50_000),
  );
  emit({ ...frames, context: true });
  const perFrame = { what: 'one raw frame a message', value: frames.value };
  const bulk = await repeat('raw WebSocket, 64 KiB frames', 'frames/s', runs, () => rawFrames(socket, 65_536, 2_000));
  emit({ ...bulk, context: true });
  const text = 'x'.repeat(88);
  emit(
    await repeat(
      'remote tell 100 B through the singleton ref',
      'msg/s',
      runs,
      () => tells(200_000, 20_000, () => ({ n: 1, text })),
      perFrame,
    ),
  );
  await accountingCost(() => ({ n: 1, text }), perFrame);
  const bytes = new Uint8Array(65_536);
  emit(
    await repeat(
      'remote tell 64 KiB through the singleton ref',
      'msg/s',
      runs,
      () => tells(2_000, 200, () => ({ n: 1, bytes })),
      {
        what: 'raw 64 KiB frames',
        value: bulk.value,
      },
    ),
  );
  await pingsAndAsks(socket);
  emit(
    await repeat('remote ask, 100 in flight', 'asks/s', runs, async () => {
      const began = now();
      for (let n = 0; n < 200; n += 1) await Promise.all(Array.from({ length: 100 }, () => ref.ask({ n: -1 })));
      return 20_000 / (now() - began) * 1_000;
    }, perFrame),
  );
  runtime.exit(0);
}
