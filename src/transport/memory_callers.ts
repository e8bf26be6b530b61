/** Callers from outside in the in-memory network: who they are, and which grant they hold, is taken as given. */
import type { Cancel } from '../actor/environment.ts';
import type { Address, DialFailure, Link, LinkClose } from './contract.ts';
import { type MemoryNetwork, refused } from './memory.ts';
import type { MemoryLink, MemoryLinkOwner } from './memory_link.ts';

/** What becomes of a call. */
export interface MemoryCallEvents {
  opened(link: Link): void;
  failed(failure: DialFailure): void;
  frame(link: Link, bytes: Uint8Array): void;
  closed(link: Link, close: LinkClose): void;
}

/** Connects the caller `id`, who holds a token of grant `owner`, to the node at `address`. */
export function memoryCall(
  network: MemoryNetwork,
  caller: { readonly id: string; readonly owner: number },
  address: Address,
  events: MemoryCallEvents,
): Cancel {
  const { environment } = network;
  const { id } = caller;
  let over = false;
  const near: MemoryLinkOwner = {
    environment,
    identity: { address: id, uid: id, clusterName: '', roles: [], runtime: 'memory' },
    frameArrived: (link, bytes) => events.frame(link, bytes),
    linkClosed: (link, close) => events.closed(link, close),
  };
  network.send(id, address, () => {
    const made: { link?: MemoryLink | undefined } = {};
    // The answer sets off first, so that what an eager node says comes behind it.
    network.send(address, id, () => {
      const { link } = made;
      if (over) link?.close(1000, 'cancelled');
      else if (link === undefined) events.failed(refused);
      else events.opened(link);
    }, environment);
    made.link = network.at(address)?.called(near, caller.owner);
  }, environment);
  return () => {
    over = true;
  };
}
