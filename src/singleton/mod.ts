/** The singleton layer. Users import it through `singlet/cluster`. */
export { SingletonHandOver, SingletonHosted, SingletonHostedAnyway, SingletonStopped } from './events.ts';
export { SingletonKey } from './key.ts';
export type { SingletonClass, SingletonName } from './naming.ts';
export { SingletonRegistry, SingletonStateError } from './registry.ts';
export * from './spawn_errors.ts';
export type { SpawnCallOptions, SpawnSingletonOptions } from './spawn.ts';
export type { SpawnSettings, SpawnSupervisor } from './spawn_settings.ts';
export type { Placement } from './host.ts';
export { StartSingletonOptions, type StartSingletonSettings } from './start_options.ts';
export type { TaskSchedule } from './schedule.ts';
export { singletonTask, type TaskRun } from './task.ts';
export { type WarmHandOver, WarmHandOverActor } from './warm_hand_over.ts';
export type { Ledger } from './sender_stream.ts';
