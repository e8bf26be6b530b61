/** Death watch: being told, exactly once, that another actor has ended. After Erlang's monitors. */
import type { Cancel } from './environment.ts';
import type { ActorRef } from './ref.ts';
import { SelfMessage } from './mailbox.ts';

/**
 * Why an actor ended. `stop`: it was asked to, or its parent stopped; `self`: `stopSelf`; `failure`: supervision ended it;
 * `kill`: by force; `unreachable`: its node is gone from the cluster; `no-such-actor`: nobody was found at that path.
 */
export type TerminationCause = 'stop' | 'self' | 'failure' | 'kill' | 'unreachable' | 'no-such-actor';

/** The notice that a watched actor has ended, given to `Actor.onTerminated`. */
export class Terminated {
  readonly ref: ActorRef<any>;
  readonly cause: TerminationCause;

  constructor(ref: ActorRef<any>, cause: TerminationCause) {
    this.ref = ref;
    this.cause = cause;
  }
}

class Notice extends SelfMessage {
  readonly watches: Watches;
  readonly entry: Entry;

  constructor(watches: Watches, entry: Entry) {
    super();
    this.watches = watches;
    this.entry = entry;
  }

  live(): boolean {
    return this.watches.take(this.entry);
  }

  handled(): void {}
}

interface Entry {
  readonly key: string;
  readonly target: ActorRef<any>;
  /** The message to get in place of `Terminated`. */
  readonly message: { readonly value: unknown } | undefined;
  cancel: Cancel | undefined;
  noticed: boolean;
}

/** What watches need of their actor. */
export interface Watcher {
  /** Starts to observe `target`; `ended` may be called before this returns. */
  observe(target: ActorRef<any>, ended: (cause: TerminationCause) => void): Cancel;
  /** `message` is a `Terminated`, or what the watcher asked for in its place. Never refused, whatever the bounds. */
  deliver(message: unknown, notice: SelfMessage): void;
}

/** Whom one actor watches. An entry lives from `watch` until its notice is handled, or `unwatch`. */
export class Watches {
  private readonly watcher: Watcher;
  private readonly entries = new Map<string, Entry>();

  constructor(watcher: Watcher) {
    this.watcher = watcher;
  }

  /** Watching again replaces the message and keeps the one notice. */
  watch(target: ActorRef<any>, message: { readonly value: unknown } | undefined): void {
    this.unwatch(target);
    const entry: Entry = { key: keyOf(target), target, message, cancel: undefined, noticed: false };
    this.entries.set(entry.key, entry);
    const cancel = this.watcher.observe(target, (cause) => this.ended(entry, cause));
    if (entry.noticed || this.entries.get(entry.key) !== entry) cancel();
    else entry.cancel = cancel;
  }

  unwatch(target: ActorRef<any>): void {
    const entry = this.entries.get(keyOf(target));
    if (entry === undefined) return;
    this.entries.delete(entry.key);
    entry.cancel?.();
  }

  clear(): void {
    for (const entry of this.entries.values()) entry.cancel?.();
    this.entries.clear();
  }

  /** True once per entry that was not unwatched. */
  take(entry: Entry): boolean {
    return this.entries.get(entry.key) === entry && this.entries.delete(entry.key);
  }

  private ended(entry: Entry, cause: TerminationCause): void {
    if (entry.noticed || this.entries.get(entry.key) !== entry) return;
    entry.noticed = true;
    entry.cancel = undefined;
    const message = entry.message === undefined ? new Terminated(entry.target, cause) : entry.message.value;
    this.watcher.deliver(message, new Notice(this, entry));
  }
}

function keyOf(ref: ActorRef<any>): string {
  return `${ref.path}#${ref.incarnation}`;
}
