/** The hook by which a cluster makes refs and watches reach other nodes. */
import type { Cancel } from './environment.ts';
import { LocalActorRef } from './local_ref.ts';
import type { ActorRef } from './ref.ts';
import type { ActorSystem } from './system.ts';
import type { TerminationCause } from './watch.ts';

export interface RefProvider {
  /** The form of a ref's path that other nodes understand. */
  qualify(ref: ActorRef<any>): string;
  /** The ref for such a path, local or remote; undefined when it is malformed or nobody local is there. */
  resolve(path: string): ActorRef<any> | undefined;
  /** Watches an actor that is not in this process. `ended` is called at most once, in a turn of its own or at once. */
  watch(target: ActorRef<any>, watcher: LocalActorRef<any>, ended: (cause: TerminationCause) => void): Cancel;
}

/** Without a cluster every actor is local. */
export function localRefProvider(system: ActorSystem): RefProvider {
  return {
    qualify: (ref) => ref.path,
    resolve: (path) => system.resolve(path),
    watch: (target, watcher, ended) => {
      system.log.warn(`${watcher.path} watches ${target.path}, which is not an actor of this process`);
      ended('no-such-actor');
      return () => {};
    },
  };
}
