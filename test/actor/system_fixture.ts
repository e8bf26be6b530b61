/** A system on a manual clock, and actors made of functions. */
import { Actor, ActorSystem, type ActorSystemOptions } from '../../src/mod.ts';
import type { ActorContext } from '../../src/mod.ts';
import type { LocalActorRef } from '../../src/actor/local_ref.ts';
import type { CellOptions } from '../../src/actor/spawn_options.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';

export interface Fixture {
  readonly env: ManualEnvironment;
  readonly system: ActorSystem;
}

export function fixture(options: ActorSystemOptions = {}): Fixture {
  const env = new ManualEnvironment();
  return { env, system: ActorSystem.create('test', { environment: env, ...options }) };
}

export type Handler<T> = (message: T, context: ActorContext<T>) => unknown;

/** An actor that does `handler` for each message. */
export function acting<T>(handler: Handler<T>): () => Actor<T> {
  return () =>
    new (class extends Actor<T> {
      override onReceive(message: T): void | Promise<void> {
        return handler(message, this.context) as void | Promise<void>;
      }
    })();
}

/** An actor that writes all that happens to it into `events`. A message that is an `Error` is thrown. */
export function recording(events: string[], hooks: Partial<Record<string, () => unknown>> = {}): () => Actor<unknown> {
  return () =>
    new (class extends Actor<unknown> {
      constructor() {
        super();
        events.push('constructed');
        hooks['constructor']?.();
      }

      override preStart(): void {
        events.push('preStart');
        return hooks['preStart']?.() as void;
      }

      override postStop(): void {
        events.push('postStop');
        return hooks['postStop']?.() as void;
      }

      override preRestart(error: unknown, message: unknown): void | Promise<void> {
        events.push(`preRestart ${(error as Error).message} ${message instanceof Error ? 'thrown' : String(message)}`);
        hooks['preRestart']?.();
        return super.preRestart(error, message);
      }

      override postRestart(error: unknown): void | Promise<void> {
        events.push(`postRestart ${(error as Error).message}`);
        return super.postRestart(error);
      }

      override onReceive(message: unknown): void {
        if (message instanceof Error) throw message;
        events.push(String(message));
      }
    })();
}

/** Spawns with the options of other layers, at `/system/<name>`. */
export function spawnManaged<T>(
  system: ActorSystem,
  name: string,
  source: () => Actor<T>,
  options: CellOptions,
): LocalActorRef<T> {
  return system.spawnSystem([name], source, options);
}

/** A promise with its ends outside. */
export function deferred<T = void>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
} {
  let ends: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    ends = { resolve, reject };
  });
  return { promise, resolve: (value) => ends?.resolve(value), reject: (error) => ends?.reject(error) };
}

/** Reasons and messages of all dead letters so far. */
export function deadLettersOf(system: ActorSystem): readonly string[] {
  return system.deadLetters.recent.map((letter) => `${letter.reason} ${String(letter.message)}`);
}
