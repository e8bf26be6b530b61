/**
 * A node for `spawn_test.ts`: has the kinds that `--kinds` names, and spawns, asks and removes singletons as its HTTP routes
 * say. It prints the same line as `node.ts`.
 */
import type { Context, Hono } from 'hono';
import { parseArgs } from 'node:util';
import { runtime } from '#runtime';
import { Actor } from '../../src/actor/actor.ts';
import { Cluster, type SpawnSingletonOptions } from '../../src/facade/mod.ts';
import { ActorSystem } from '../../src/mod.ts';

export type CountMessage = 'add' | 'fail';
export interface CountAnswer {
  readonly count: number;
  readonly host: string;
  readonly epoch: number;
  readonly kind: string;
  readonly props: unknown;
}
export interface SpawnRequest {
  readonly name: string;
  readonly kind: string;
  readonly options?: SpawnSingletonOptions;
  /** Calls at once. */
  readonly times?: number;
}
export type SpawnAnswer = { readonly ref: string } | {
  readonly error: {
    readonly name: string;
    readonly code: string;
    readonly retryable: boolean;
    readonly message: string;
  };
};

/** Counts; what it has counted is gone after a restart, and kept when its supervisor says `resume`. */
class Counter extends Actor<CountMessage> {
  readonly #kind: string;
  readonly #props: unknown;
  #count = 0;

  constructor(kind: string, props: unknown) {
    super();
    this.#kind = kind;
    this.#props = props;
  }

  override onReceive(message: CountMessage): void {
    if (message === 'fail') throw new Error('asked to fail');
    this.#count += 1;
    const answer: CountAnswer = {
      count: this.#count,
      host: this.cluster.address,
      epoch: this.context.epoch,
      kind: this.#kind,
      props: this.#props,
    };
    this.context.sender.tell(answer);
  }
}

const { values } = parseArgs({
  args: [...runtime.args()],
  options: {
    seeds: { type: 'string', default: '' },
    kinds: { type: 'string', default: '' },
    roles: { type: 'string', default: '' },
  },
});
const list = (text: string): string[] => text.split(',').filter((part) => part !== '');

const found: { cluster?: Cluster } = {};
const attempt = async (run: () => Promise<SpawnAnswer>): Promise<SpawnAnswer> => {
  try {
    return await run();
  } catch (error) {
    const { name, code, retryable, message } = error as Error & { code: string; retryable: boolean };
    return { error: { name, code, retryable, message } };
  }
};

function addRoutes(app: Hono): void {
  app.post('/spawn', async (context: Context) => {
    const { name, kind, options, times = 1 } = await context.req.json<SpawnRequest>();
    const calls = Array.from(
      { length: times },
      () => attempt(async () => ({ ref: (await found.cluster!.singleton.spawn(name, kind, options)).path })),
    );
    return context.json(await Promise.all(calls));
  });
  app.post('/despawn', async (context: Context) => {
    const { name } = await context.req.json<{ name: string }>();
    return context.json(await found.cluster!.singleton.despawn(name));
  });
  app.post('/ask', async (context: Context) => {
    const { name, message } = await context.req.json<{ name: string; message: CountMessage }>();
    const ref = found.cluster!.singleton.ref<CountMessage>(name);
    if (message !== 'fail') return context.json(await ref.ask<CountAnswer>(message, 9_000));
    ref.tell(message);
    return context.json(null);
  });
}

const system = ActorSystem.create('spawns', { logLevel: 'info' });
const cluster = await Cluster.join(system, {
  seeds: list(values.seeds),
  roles: list(values.roles),
  kinds: list(values.kinds).map((name) => ({ name, factory: (props: unknown) => new Counter(name, props) })),
  http: (app) => addRoutes(app as Hono),
}, {
  onListening: ({ address, uid }) => {
    console.log(`node ${address} uid ${uid} on ${runtime.name} ${runtime.version}, http://${address}/`);
  },
});
found.cluster = cluster;
runtime.onSignal(() => void system.terminate().then(() => runtime.exit(0)));
await cluster.whenEnded;
