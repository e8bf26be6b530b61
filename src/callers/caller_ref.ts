/** A receiver of a caller, as the cluster sees it: answers go to it by the way on which the caller was heard of last. */
import { ActorRef, admitSender } from '../actor/ref.ts';
import { callerPrefix } from '../singleton/outside.ts';
import type { Address } from '../transport/contract.ts';

/** Where a caller is connected. */
export interface GatewayPlace {
  readonly uid: string;
  readonly address: Address;
}

export interface CallerRefOwner {
  reply(ref: CallerRef, message: unknown, sender: ActorRef<any> | undefined): void;
}

/** A caller has no way to answer but by a message to a singleton. */
export class CallerAskError extends Error {
  override readonly name = 'CallerAskError';
}

export class CallerRef extends ActorRef<unknown> {
  readonly path: string;
  readonly incarnation = 0;
  readonly caller: string;
  readonly receiver: string;
  /** Where the caller was when the ref was sent here, for nodes that have not heard of it themselves. */
  readonly hint: GatewayPlace | undefined;
  readonly #owner: CallerRefOwner;

  constructor(caller: string, receiver: string, owner: CallerRefOwner, hint?: GatewayPlace) {
    super();
    this.path = `singlet://${callerScheme}/${caller}/${receiver}`;
    this.caller = caller;
    this.receiver = receiver;
    this.hint = hint;
    this.#owner = owner;
  }

  /** At most once: what is said while the caller is not connected is lost, and a dead letter where that is known. */
  tell(message: unknown, sender?: ActorRef<any>): void {
    this.#owner.reply(this, message, admitSender(sender));
  }

  ask<R = unknown>(): Promise<R> {
    return Promise.reject(new CallerAskError(`${this.path} cannot be asked: callers answer by messages to singletons`));
  }

  /** Does nothing: a caller ends when it closes its connection. */
  stop(): void {}
}

export const callerScheme = 'caller';

/** The text by which a ref travels between members. */
export function callerRefName(ref: CallerRef, place: GatewayPlace | undefined): string {
  const at = place === undefined ? '' : `@${place.address}#${place.uid}`;
  return `${ref.caller}/${ref.receiver}${at}`;
}

/** Undefined for a text that is none. */
export function parseCallerRefName(
  name: string,
): { readonly caller: string; readonly receiver: string; readonly place: GatewayPlace | undefined } | undefined {
  const parts = /^(caller:[\w-]{1,100})\/([\w-]{1,64})(?:@([^#]{1,300})#(.{1,128}))?$/.exec(name);
  if (parts === null) return undefined;
  const [, caller, receiver, address, uid] = parts;
  const place = address === undefined ? undefined : { address, uid: uid! };
  return { caller: caller!, receiver: receiver!, place };
}

/** What the key of a caller's session is known by inside the cluster; the key itself is not told to anybody. */
export async function callerId(grant: string, key: string): Promise<string> {
  const text = new TextEncoder().encode(`singlet caller\0${grant}\0${key}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return callerPrefix + Array.from(digest.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
