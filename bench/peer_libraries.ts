/** Other libraries behind one interface, each used as its own documentation does. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

export interface Library {
  /** Starts an actor, or what comes nearest to one, that calls `handle` for each message. */
  spawn(handle: () => void): { tell(message: number): void; stop(): void };
  /** Asks one that answers with what it was asked. Absent where the library has no request with a reply. */
  ask?(message: number): Promise<unknown>;
  stop(): void | Promise<void>;
}

/** Imports a package of the peers' folder, whatever this repository has installed. */
// deno-lint-ignore no-explicit-any
export type Loader = (name: string) => Promise<any>;

export function loaderOf(folder: string): Loader {
  const require = createRequire(pathToFileURL(`${folder}/package.json`));
  return (name) => import(pathToFileURL(require.resolve(name)).href);
}

export const libraries: Readonly<Record<string, (load: Loader) => Promise<Library>>> = {
  'actor-ts': actorTs,
  nact,
  xstate,
  'Effect queue': effect,
};

async function actorTs(load: Loader): Promise<Library> {
  const { Actor, ActorSystem, ActorSystemOptions, LogLevel } = await load('actor-ts');
  const system = ActorSystem.create('peer', ActorSystemOptions.create().withLogLevel(LogLevel.Off));
  class Handler extends Actor {
    readonly #handle: () => void;
    constructor(handle: () => void) {
      super();
      this.#handle = handle;
    }
    onReceive(): void {
      this.#handle();
    }
  }
  class Echo extends Actor {
    onReceive(message: number): void {
      // deno-lint-ignore no-explicit-any
      (this as any).sender.forEach((asker: { tell(reply: number): void }) => asker.tell(message));
    }
  }
  const echo = system.spawnAnonymous(Echo);
  return {
    spawn: (handle) => system.spawnAnonymous(() => new Handler(handle)),
    ask: (n) => echo.ask(n, 5_000),
    stop: () => system.terminate(),
  };
}

async function nact(load: Loader): Promise<Library> {
  const { start, dispatch, spawn, query, stop } = await load('nact');
  const system = start();
  let count = 0;
  const echo = spawn(system, (_: unknown, { n, sender }: { n: number; sender: unknown }) => dispatch(sender, n));
  return {
    spawn: (handle) => {
      // Names of its own making are random, and among so many two are equal now and then.
      const actor = spawn(system, () => handle(), `counter-${count += 1}`);
      return { tell: (n) => dispatch(actor, n), stop: () => stop(actor) };
    },
    ask: (n) => query(echo, (sender: unknown) => ({ n, sender }), 5_000),
    stop: () => stop(system),
  };
}

async function xstate(load: Loader): Promise<Library> {
  const { createActor, fromTransition } = await load('xstate');
  return {
    spawn: (handle) => {
      const logic = fromTransition((state: number) => {
        handle();
        return state + 1;
      }, 0);
      const actor = createActor(logic).start();
      return { tell: (n) => actor.send({ type: 'message', n }), stop: () => actor.stop() };
    },
    stop: () => {},
  };
}

/** A fiber that takes from an unbounded queue; a question carries what it is answered with. */
async function effect(load: Loader): Promise<Library> {
  const { Deferred, Effect, Fiber, Queue } = await load('effect');
  // deno-lint-ignore no-explicit-any
  const serve = (each: (message: any) => unknown): { queue: unknown; fiber: unknown } => {
    const queue = Effect.runSync(Queue.unbounded());
    return { queue, fiber: Effect.runFork(Effect.forever(Effect.flatMap(Queue.take(queue), each))) };
  };
  // Its name in version 4, and in version 3.
  const offer = Queue.offerUnsafe ?? Queue.unsafeOffer;
  const echo = serve(({ n, reply }) => Deferred.succeed(reply, n));
  return {
    spawn: (handle) => {
      const { queue, fiber } = serve(() => Effect.sync(handle));
      return { tell: (n) => offer(queue, n), stop: () => Effect.runFork(Fiber.interrupt(fiber)) };
    },
    ask: (n) =>
      Effect.runPromise(
        Effect.flatMap(
          Deferred.make(),
          (reply: unknown) => Effect.andThen(Queue.offer(echo.queue, { n, reply }), Deferred.await(reply)),
        ),
      ),
    stop: () => Effect.runPromise(Fiber.interrupt(echo.fiber)),
  };
}
