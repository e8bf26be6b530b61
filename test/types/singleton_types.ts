/**
 * What must compile, and what must not. Compiled by `tsc` only: each `@ts-expect-error` is a documented compile error, and
 * the compiler complains when it stops being one.
 */
import { Actor, type ActorRef } from 'singlet';
import { type Cluster, SingletonKey, StartSingletonOptions, WarmHandOverActor } from 'singlet/cluster';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function sameType<A, B>(_same: Same<A, B>): void {}

interface JobCommand {
  readonly kind: 'schedule';
  readonly jobId: string;
}

class JobScheduler extends Actor<JobCommand> {
  static readonly singleton = SingletonKey.of<JobCommand>('job-scheduler');
  override onReceive(message: JobCommand): void {
    sameType<typeof message.jobId, string>(true);
  }
}

/** Enough for `isolatedDeclarations`: the annotation on the left decides, and `of` infers from it. */
class Annotated extends Actor<JobCommand> {
  static readonly singleton: SingletonKey<JobCommand> = SingletonKey.of('annotated', 'ingress');
  override onReceive(_message: JobCommand): void {}
}

class WithArguments extends Actor<JobCommand> {
  static readonly singleton = SingletonKey.of<JobCommand>('with-arguments');
  readonly limit: number;
  constructor(limit: number) {
    super();
    this.limit = limit;
  }
  override onReceive(_message: JobCommand): void {}
}

class WithoutKey extends Actor<JobCommand> {
  override onReceive(_message: JobCommand): void {}
}

class WrongKey extends Actor<JobCommand> {
  static readonly singleton = SingletonKey.of<number>('wrong-key');
  override onReceive(_message: JobCommand): void {}
}

/** The key takes more than the actor does. */
class WideKey extends Actor<JobCommand> {
  static readonly singleton = SingletonKey.of<JobCommand | number>('wide-key');
  override onReceive(_message: JobCommand): void {}
}

class NotAnActor {
  static readonly singleton = SingletonKey.of<JobCommand>('not-an-actor');
}

/** Never called. */
export function starts(cluster: Cluster): void {
  const started = cluster.singleton.start(JobScheduler);
  sameType<typeof started, ActorRef<JobCommand>>(true);
  started.tell({ kind: 'schedule', jobId: '42' });
  // @ts-expect-error: not a JobCommand
  started.tell({ kind: 'schedule', jobId: 42 });
  // @ts-expect-error: nothing to tell
  started.tell();

  const annotated = cluster.singleton.start(Annotated);
  sameType<typeof annotated, ActorRef<JobCommand>>(true);

  // @ts-expect-error: the class has no key
  cluster.singleton.start(WithoutKey);
  // @ts-expect-error: the key takes numbers, the actor JobCommands
  cluster.singleton.start(WrongKey);
  // @ts-expect-error: the key would let numbers through to the actor
  cluster.singleton.start(WideKey);
  // @ts-expect-error: not an actor
  cluster.singleton.start(NotAnActor);
  // @ts-expect-error: nothing to start
  cluster.singleton.start();

  // @ts-expect-error: the constructor needs an argument, so a factory is needed
  cluster.singleton.start(WithArguments);
  const made = cluster.singleton.start(WithArguments, () => new WithArguments(3));
  sameType<typeof made, ActorRef<JobCommand>>(true);
  // @ts-expect-error: the factory makes another actor
  cluster.singleton.start(WithArguments, () => new NumberActor());
}

class NumberActor extends Actor<number> {
  override onReceive(_message: number): void {}
}

/** Never called. */
export function startsByKeyAndOptions(cluster: Cluster): void {
  const key = SingletonKey.of<number>('numbers');
  const numbers = cluster.singleton.start(key, NumberActor);
  sameType<typeof numbers, ActorRef<number>>(true);
  cluster.singleton.start(key, () => new NumberActor(), { bufferSize: 10 });
  // @ts-expect-error: the actor of another message type
  cluster.singleton.start(key, WithoutKey);

  const plain = cluster.singleton.start({ typeName: 'numbers', actor: NumberActor });
  sameType<typeof plain, ActorRef<number>>(true);
  const built = cluster.singleton.start(
    StartSingletonOptions.create<number>().withTypeName('numbers').withActor(NumberActor).withBufferSize(10),
  );
  sameType<typeof built, ActorRef<number>>(true);
  // @ts-expect-error: not a number
  cluster.singleton.start(key, NumberActor, { bufferSize: '10' });
  // @ts-expect-error: not an option
  cluster.singleton.start(key, NumberActor, { bufferSise: 10 });
  // @ts-expect-error: not a policy
  cluster.singleton.start(key, NumberActor, { handOverPolicy: 'host-now' });
}

/** Never called. */
export function refs(cluster: Cluster): void {
  const byClass = cluster.singleton.ref(JobScheduler);
  sameType<typeof byClass, ActorRef<JobCommand>>(true);
  const byKey = cluster.singleton.ref(SingletonKey.of<number>('numbers'));
  sameType<typeof byKey, ActorRef<number>>(true);
  byKey.tell(1);
  // @ts-expect-error: not a number
  byKey.tell('1');

  const answer = byClass.ask<number>({ kind: 'schedule', jobId: '42' }, 1_000);
  sameType<typeof answer, Promise<number>>(true);
}

/** Never called. */
export function keys(): void {
  const untyped = SingletonKey.of('x');
  sameType<typeof untyped, SingletonKey<unknown>>(true);
  const typed: SingletonKey<JobCommand> = SingletonKey.of('x');
  // @ts-expect-error: keys of different messages are different types
  const other: SingletonKey<number> = typed;
  // @ts-expect-error: in the other direction too
  const wider: SingletonKey<JobCommand | number> = typed;
  void [untyped, other, wider];
  // @ts-expect-error: made by `of` only
  new SingletonKey('x');
}

class Warm extends WarmHandOverActor<number> {
  static readonly singleton = SingletonKey.of<number>('warm');
  #count = 0;
  override onReceive(message: number): void {
    this.#count += message;
  }
  override serializeForHandOver(): Uint8Array | null {
    return Uint8Array.of(this.#count);
  }
  override restoreFromHandOver(state: Uint8Array): void {
    this.#count = state[0] ?? 0;
  }
}

// @ts-expect-error: half of a warm hand-over does not compile
export class HalfWarm extends WarmHandOverActor<number> {
  override onReceive(_message: number): void {}
  override serializeForHandOver(): Uint8Array | null {
    return null;
  }
}

/** Never called. */
export function warm(cluster: Cluster): void {
  const ref = cluster.singleton.start(Warm);
  sameType<typeof ref, ActorRef<number>>(true);
}
