/** The name of a singleton, from whatever stands for it. Apart from the rest, so that callers need no actors. */
import { OptionsError } from '../actor/options.ts';
import { SingletonKey } from './key.ts';

export function nameOf(name: unknown): string {
  if (typeof name === 'string') return SingletonKey.of(name).typeName;
  if (name instanceof SingletonKey) return name.typeName;
  return keyOfClass(name).typeName;
}

export function keyOfClass(type: unknown): SingletonKey<any> {
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
