/** About how much of a whole state its members are, without encoding it: the size of one message, which has a bound. */
import { limits } from '../limits.ts';
import { utf8Bytes } from '../wire/utf8.ts';
import type { HostingClaim, StartedRecord } from './member.ts';

export interface StateSize {
  readonly bytes: number;
  /** Array elements and texts, as `limits.itemsPerFrame` counts them. */
  readonly items: number;
}

interface Sized {
  readonly address: string;
  readonly roles: readonly string[];
  readonly started: ReadonlyMap<string, StartedRecord>;
  readonly hosting: ReadonlyMap<string, HostingClaim>;
}

/** Heads, status, numbers and uid of a record; numbers beside a name that was started, and that is hosted. */
const memberBytes = 160;
const startedBytes = 16;
const hostingBytes = 36;
const memberItems = 12;
const startedItems = 5;
const hostingItems = 5;

const sizes = new WeakMap<object, StateSize>();

/** Once for each table: a member's are other objects when anything in them has changed. */
function kept<T extends object>(table: T, measure: (table: T) => StateSize): StateSize {
  let size = sizes.get(table);
  if (size === undefined) sizes.set(table, size = measure(table));
  return size;
}

export function membersSize(members: Iterable<Sized>): StateSize {
  let [bytes, items] = [0, 0];
  for (const { address, roles, started, hosting } of members) {
    const parts = [kept(roles, rolesSize), kept(started, startedSize), kept(hosting, hostingSize)];
    bytes += memberBytes + address.length + parts.reduce((sum, part) => sum + part.bytes, 0);
    items += memberItems + parts.reduce((sum, part) => sum + part.items, 0);
  }
  return { bytes, items };
}

function rolesSize(roles: readonly string[]): StateSize {
  return { bytes: roles.reduce((sum, role) => sum + 3 + utf8Bytes(role), 0), items: roles.length };
}

function startedSize(started: ReadonlyMap<string, StartedRecord>): StateSize {
  let bytes = 0;
  for (const [name, { role }] of started) bytes += startedBytes + utf8Bytes(name) + utf8Bytes(role ?? '');
  return { bytes, items: started.size * startedItems };
}

function hostingSize(hosting: ReadonlyMap<string, HostingClaim>): StateSize {
  let bytes = 0;
  for (const name of hosting.keys()) bytes += hostingBytes + utf8Bytes(name);
  return { bytes, items: hosting.size * hostingItems };
}

/**
 * Why a member may not start one more singleton; undefined when it may. A quarter of what a message may have is left for
 * those that start something at the same time, for registrations and for what is hosted later.
 */
export function noRoomFor(name: string, members: Iterable<Sized>): string | undefined {
  const { bytes, items } = membersSize(members);
  const more = startedBytes + hostingBytes + 2 * utf8Bytes(name);
  const most = `what all members have started would take`;
  if (bytes + more > limits.stateBytes) {
    return `${most} ${bytes + more} bytes, at most ${limits.stateBytes} are allowed`;
  }
  const count = items + startedItems + hostingItems;
  return count > limits.stateItems ? `${most} ${count} items, at most ${limits.stateItems} are allowed` : undefined;
}
