/** How singletons are named and started: the calling shapes of the API, brought into one. */
import { type Actor, type ActorOrFactory, isActorClass } from '../actor/actor.ts';
import { OptionsError } from '../actor/options.ts';
import { SingletonKey } from './key.ts';
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

export type SingletonName<T> = SingletonClass<T> | SingletonKey<T> | string;

export function nameOf(name: unknown): string {
  if (typeof name === 'string') return SingletonKey.of(name).typeName;
  if (name instanceof SingletonKey) return name.typeName;
  return keyOfClass(name).typeName;
}

function keyOfClass(type: unknown): SingletonKey<any> {
  const key = (type as { singleton?: unknown } | undefined)?.singleton;
  if (key instanceof SingletonKey) return key;
  const shown = typeof type === 'function' && type.name ? `class ${type.name}` : String(type);
  throw new OptionsError(
    'SingletonKey',
    'singleton',
    shown,
    'the class needs `static readonly singleton = SingletonKey.of(…)`',
  );
}

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
