/** How singletons are started: the calling shapes of the API, brought into one. */
import { type Actor, type ActorOrFactory, isActorClass } from '../actor/actor.ts';
import { SingletonKey } from './key.ts';
import { keyOfClass } from './singleton_name.ts';
import {
  settingsOf,
  type StartOptionsInput,
  StartSingletonOptions,
  type StartSingletonSettings,
} from './start_options.ts';

/** A class of actors that says which singleton it is. */
export type SingletonClass<T> = (abstract new (...args: never[]) => Actor<T>) & { readonly singleton: SingletonKey<T> };

/** One that needs no constructor arguments, so that no factory is needed. */
export type SimpleSingletonClass<T> = (new () => Actor<T>) & { readonly singleton: SingletonKey<T> };

/**
 * The three ways to say which singleton is meant: its class, its key, or its name. Only the first two know the type of
 * its messages.
 */
export type SingletonName<T> = SingletonClass<T> | SingletonKey<T> | string;

/** Brings the calling shapes of `start` into one. */
export function startSettings(first: unknown, second: unknown, third: unknown): StartSingletonSettings<any> {
  if (first instanceof SingletonKey) {
    return named(first, second, settingsOf(third as StartOptionsInput<any> | undefined));
  }
  if (typeof first === 'function') {
    const key = keyOfClass(first);
    if (typeof second === 'function') {
      return named(key, second, settingsOf(third as StartOptionsInput<any> | undefined));
    }
    return named(key, first, settingsOf(second as StartOptionsInput<any> | undefined));
  }
  if (first instanceof StartSingletonOptions || (typeof first === 'object' && first !== null)) {
    const settings = settingsOf(first as StartOptionsInput<any>);
    const actor = settings.actor as unknown;
    const key = typeof actor === 'function' && (actor as { singleton?: unknown }).singleton;
    if (settings.typeName === undefined && key instanceof SingletonKey && isActorClass(actor as ActorOrFactory<any>)) {
      return named(key, actor, settings);
    }
    return settings;
  }
  return keyOfClass(first) && {};
}

function named(
  key: SingletonKey<any>,
  actor: unknown,
  settings: StartSingletonSettings<any>,
): StartSingletonSettings<any> {
  const role = settings.role ?? key.role;
  return {
    ...settings,
    typeName: settings.typeName ?? key.typeName,
    actor: settings.actor ?? (actor as ActorOrFactory<any>),
    ...(role === undefined ? {} : { role }),
  };
}
