/** Actor kinds that a node can make by name, for singletons spawned from any node. */
import type { Actor, ActorFactory } from '../actor/actor.ts';
import type { Logger } from '../actor/environment.ts';
import { OptionsError } from '../actor/options.ts';
import type { KindOption } from '../cluster/cluster_options.ts';
import { limits } from '../limits.ts';

export type KindFactory = (props: unknown) => ActorFactory<any>;

/** What `spawn` takes for a kind: a class, a named factory, or the name alone. */
export type KindName = KindOption | string;

/** @throws OptionsError for a kind without a usable name */
export function kindNameOf(kind: KindName, log: Logger): string {
  if (typeof kind === 'string') return checked(kind);
  if (typeof kind !== 'function') return checked(kind.name);
  const explicit = (kind as { kind?: unknown }).kind;
  if (typeof explicit === 'string') return checked(explicit);
  log.warn(`kind ${kind.name} has no \`static readonly kind\`: its class name is used, which bundlers may change`);
  return checked(kind.name);
}

function checked(name: string): string {
  const good = name.length > 0 && name.length <= limits.typeNameChars && !/[/\p{Cc}]/u.test(name);
  if (!good) {
    throw new OptionsError('kinds', 'name', name, `must be 1 to ${limits.typeNameChars} characters without '/'`);
  }
  return name;
}

/** @throws OptionsError when two kinds have one name */
export function kindFactories(kinds: readonly KindOption[], log: Logger): ReadonlyMap<string, KindFactory> {
  const factories = new Map<string, KindFactory>();
  for (const kind of kinds) {
    const name = kindNameOf(kind, log);
    if (factories.has(name)) throw new OptionsError('ClusterOptions', 'kinds', name, 'must name each kind once');
    const make: (props: unknown) => unknown = typeof kind === 'function'
      ? (props) => new (kind as unknown as new (props: unknown) => Actor<any>)(props)
      : kind.factory;
    factories.set(name, (props) => () => make(props) as Actor<any>);
  }
  return factories;
}
