/** Senders that are no members of the cluster: callers, known by an id of their own in the place of a uid. */
import type { Envelope } from '../transport/peers_contract.ts';

export const callerPrefix = 'caller:';

/** No uid of a member looks like this. */
export function isCaller(uid: string): boolean {
  return uid.startsWith(callerPrefix);
}

/** In the place of the address that a caller does not have. */
export const outsideAddress = 'outside:0';

export interface OutsideAnswers {
  /** Sends `envelope` (streamOpened, acknowledge, refuse) towards the caller, by the way it was heard of last. */
  answer(caller: string, envelope: Envelope): void;
}

/** In the place of a message whose content did not decode: it counts as handled and failed. */
export const spoiled: unique symbol = Symbol('spoiled');
