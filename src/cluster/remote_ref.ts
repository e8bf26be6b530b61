/** Refs of actors on other nodes. */
import { ActorRef, admitSender } from '../actor/ref.ts';
import type { Address } from '../transport/contract.ts';

/** Where a remote actor is. `uid` is the process: a later one at the same address is another node. */
export interface RemoteTarget {
  readonly address: Address;
  readonly uid: string;
  /** The path on that node, `/user/a/b`. */
  readonly localPath: string;
  /** 0: whoever is there. */
  readonly incarnation: number;
}

/** What remote refs need of their node. */
export interface RemoteSender {
  tell(ref: RemoteRef<any>, message: unknown, sender: ActorRef<any> | undefined): void;
  ask<R>(ref: RemoteRef<any>, message: unknown, timeoutMs: number | undefined): Promise<R>;
  stop(ref: RemoteRef<any>): void;
}

/** `singlet://uid@host:port/user/a`, the path of an actor as seen from other nodes. */
export function remotePath(target: Omit<RemoteTarget, 'incarnation'>): string {
  return `singlet://${target.uid}@${target.address}${target.localPath}`;
}

/** Undefined unless `path` is spelled exactly as `remotePath` spells it. */
export function parseRemotePath(path: string): Omit<RemoteTarget, 'incarnation'> | undefined {
  const parts = /^singlet:\/\/([^@/]+)@([^/]+)(\/.+)$/.exec(path);
  if (parts === null) return undefined;
  return { uid: parts[1]!, address: parts[2]!, localPath: parts[3]! };
}

/** `singlet://singleton/name`, a ref that means the same on every node. */
export function virtualPath(scheme: string, name: string): string {
  return `singlet://${scheme}/${name}`;
}

export function parseVirtualPath(path: string): { readonly scheme: string; readonly name: string } | undefined {
  const parts = /^singlet:\/\/([^@/]+)\/(.+)$/.exec(path);
  return parts === null ? undefined : { scheme: parts[1]!, name: parts[2]! };
}

/** Whether other nodes may address this path at all: never `/system`, and not `/user` itself. */
export function isReachable(localPath: string): boolean {
  return localPath.startsWith('/user/') || localPath.startsWith('/temp/');
}

export class RemoteRef<T = unknown> extends ActorRef<T> implements RemoteTarget {
  readonly incarnation: number;
  readonly address: Address;
  readonly uid: string;
  readonly localPath: string;
  private readonly owner: RemoteSender;
  private knownPath: string | undefined = undefined;

  constructor(target: RemoteTarget, owner: RemoteSender) {
    super();
    this.incarnation = target.incarnation;
    this.address = target.address;
    this.uid = target.uid;
    this.localPath = target.localPath;
    this.owner = owner;
  }

  /** Made when somebody asks: most senders are only replied to. */
  get path(): string {
    return this.knownPath ??= remotePath(this);
  }

  tell(message: T, sender?: ActorRef<any>): void {
    this.owner.tell(this, message, admitSender(sender));
  }

  ask<R = unknown>(message: T, timeoutMs?: number): Promise<R> {
    return this.owner.ask<R>(this, message, timeoutMs);
  }

  /** Like the `stop` of a local ref; it reaches the actor after the messages sent before. */
  stop(): void {
    this.owner.stop(this);
  }
}

/** A ref to an actor of this node that is not (or no longer) there, or may not be reached from outside. */
export class DeadRef extends ActorRef<unknown> {
  readonly path: string;
  readonly incarnation: number;
  private readonly publish: (message: unknown, sender: ActorRef<any> | undefined) => void;
  private readonly askOne: <R>(ref: ActorRef<any>, message: unknown, timeoutMs: number | undefined) => Promise<R>;

  constructor(
    path: string,
    incarnation: number,
    publish: (message: unknown, sender: ActorRef<any> | undefined) => void,
    ask: <R>(ref: ActorRef<any>, message: unknown, timeoutMs: number | undefined) => Promise<R>,
  ) {
    super();
    this.path = path;
    this.incarnation = incarnation;
    this.publish = publish;
    this.askOne = ask;
  }

  tell(message: unknown, sender?: ActorRef<any>): void {
    this.publish(message, admitSender(sender));
  }

  ask<R = unknown>(message: unknown, timeoutMs?: number): Promise<R> {
    return this.askOne<R>(this, message, timeoutMs);
  }

  stop(): void {}
}
