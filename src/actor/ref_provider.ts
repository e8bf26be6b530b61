/** The hook by which a cluster makes refs and watches reach other nodes. */
import type { Cancel } from './environment.ts';
import { LocalActorRef } from './local_ref.ts';
import { ActorRef } from './ref.ts';
import type { ActorSystem } from './system.ts';
import type { TerminationCause } from './watch.ts';

export interface RefProvider {
  /** The form of a ref's path that other nodes understand. */
  qualify(ref: ActorRef<any>): string;
  /** The ref for such a path, local or remote; undefined when it is malformed or nobody local is there. */
  resolve(path: string): ActorRef<any> | undefined;
  /**
   * A message's sender as a field of what goes to another node, in the shortest form that `senderFrom` of the receiver
   * understands.
   */
  senderField(sender: ActorRef<any> | undefined): unknown;
  /** The sender that `peer` put into such a field; undefined for anything else. */
  senderFrom(peer: { readonly address: string; readonly uid: string }, field: unknown): ActorRef<any> | undefined;
  /** Watches an actor that is not in this process. `ended` is called at most once, in a turn of its own or at once. */
  watch(target: ActorRef<any>, watcher: LocalActorRef<any>, ended: (cause: TerminationCause) => void): Cancel;
}

/** Without a cluster every actor is local. */
export function localRefProvider(system: ActorSystem): RefProvider {
  return {
    qualify: (ref) => ref.path,
    resolve: (path) => system.resolve(path),
    senderField: (sender) => sender ?? null,
    senderFrom: (_peer, field) => field instanceof ActorRef ? field : undefined,
    watch: (target, watcher, ended) => {
      system.log.warn(`${watcher.path} watches ${target.path}, which is not an actor of this process`);
      ended('no-such-actor');
      return () => {};
    },
  };
}
