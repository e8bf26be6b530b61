/** The public entry `singlet`: actors, and the system they live in. */
export { Actor, type ActorClass, type ActorFactory, type ActorOrFactory } from './actor/actor.ts';
export type { ActorContext } from './actor/context.ts';
export {
  CoordinatedShutdown,
  type ShutdownPhase,
  shutdownPhases,
  type ShutdownTask,
} from './actor/coordinated_shutdown.ts';
export { DeadLetter, type DeadLetterFields, type DeadLetterReason, type DeadLetters } from './actor/dead_letters.ts';
export type { Cancel, Clock, Environment, Logger, LogLevel, Random, Timers, Turns } from './actor/environment.ts';
export {
  ActorAlreadyExistsError,
  ActorNameError,
  ActorStoppedError,
  ActorUsageError,
  AskTimeoutError,
  FencedError,
  NoClusterError,
  StartTimeoutError,
  SystemTerminatedError,
  TooManyAsksError,
  UndeliveredError,
} from './actor/errors.ts';
export { ActorFailed, type EventClass, EventStream } from './actor/event_stream.ts';
export { consoleLogger, LevelLogger } from './actor/logger.ts';
export { OptionsError } from './actor/options.ts';
export { realEnvironment } from './actor/real_environment.ts';
export { ActorRef } from './actor/ref.ts';
export type { MailboxOptions, SpawnOptions } from './actor/spawn_options.ts';
export { type Backoff, type Directive, type SupervisorOptions, SupervisorStrategy } from './actor/supervision.ts';
export { ActorSystem, type ActorSystemOptions } from './actor/system.ts';
export type { ActorTimers, TimerKey } from './actor/timers.ts';
export { Terminated, type TerminationCause } from './actor/watch.ts';
