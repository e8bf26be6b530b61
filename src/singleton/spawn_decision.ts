/** What the leader does about a request to spawn, by its view. Pure. */
import type { Member, MembershipView } from '../cluster/member.ts';
import { limits } from '../limits.ts';
import { carriesRole } from './host.ts';
import { type SpawnError, spawnError } from './spawn_errors.ts';
import {
  gossipBytes,
  kindMark,
  type Registration,
  registrationBytes,
  registrations,
  spawnKey,
} from './spawn_registration.ts';

export type SpawnDecision =
  | { readonly kind: 'exists' }
  /**
   * Register it. `host` is the member that will host it first: no other actor of this name may be there. `starters` have a
   * singleton of this name, which may be left from a registration that was removed just now: they must say so.
   */
  | { readonly kind: 'register'; readonly host: Member; readonly starters: readonly Member[] }
  | { readonly kind: 'refuse'; readonly error: SpawnError };

/** Same name, kind and role again is the same singleton. */
export function decideSpawn(view: MembershipView, wanted: Registration): SpawnDecision {
  const refuse = (...[code, message]: Parameters<typeof spawnError>): SpawnDecision => ({
    kind: 'refuse',
    error: spawnError(code, message),
  });
  const all = registrations(view);
  const same = (one: Registration): boolean => one.kind === wanted.kind && one.role === wanted.role;
  const byName = all.find((one) => one.name === wanted.name);
  if (byName && same(byName)) return { kind: 'exists' };
  if (byName) {
    const held = `${byName.kind}${roleText(byName.role)}`;
    return refuse('actor-already-exists', `the name '${wanted.name}' is held by a singleton of kind ${held}`);
  }
  const winner = all.find(same);
  if (winner) {
    const message = `the singleton of kind ${wanted.kind}${roleText(wanted.role)} is '${winner.name}'`;
    return refuse('singleton-already-exists', message);
  }
  const starters = view.members.filter((member) => member.status !== 'down' && member.started.has(wanted.name));
  if (starters.length > 0 && !view.entries.has(spawnKey(wanted.name))) {
    return refuse('actor-already-exists', `'${wanted.name}' is a singleton that nodes start themselves`);
  }
  const full = fullness(view, wanted, all.length);
  if (full) return refuse('registry-full', full);
  return place(view, wanted, starters);
}

function place(view: MembershipView, { kind, role }: Registration, starters: readonly Member[]): SpawnDecision {
  const able = view.members.filter((member) => member.status === 'up' && carriesRole(member, role));
  if (able.length === 0) {
    const message = role === undefined ? 'no member is up' : `no up member carries the role ${role}`;
    return { kind: 'refuse', error: spawnError('no-eligible-member', message) };
  }
  const host = able.find((member) => member.started.has(kindMark(kind)));
  if (host) return { kind: 'register', host, starters };
  const message = `kind ${kind} is registered on no up member${roleText(role)}: see ClusterOptions.withKinds`;
  return { kind: 'refuse', error: spawnError('kind-not-registered', message) };
}

function fullness(view: MembershipView, wanted: Registration, count: number): string | undefined {
  if (count >= limits.singletons) return `${limits.singletons} singletons are registered already`;
  if (!view.entries.has(spawnKey(wanted.name)) && view.entries.size >= limits.entries) {
    return `${limits.entries} names and pins are remembered already, removed ones included`;
  }
  const bytes = gossipBytes(view) + registrationBytes(wanted, view.members.length);
  if (bytes <= limits.registrationsBytes) return undefined;
  return `with ${wanted.name}, registrations would take ${bytes} bytes of every gossip, more than ${limits.registrationsBytes}`;
}

function roleText(role: string | undefined): string {
  return role === undefined ? '' : ` with role ${role}`;
}

/** Acknowledgements that make a registration safe against the loss of any minority: more than half of the `up` members. */
export function quorumOf(view: MembershipView): number {
  return Math.floor(view.members.filter((member) => member.status === 'up').length / 2) + 1;
}

/** Do these members, as far as they are up, make a majority? */
export function isQuorum(view: MembershipView, uids: ReadonlySet<string>): boolean {
  const up = view.members.filter((member) => member.status === 'up');
  return up.filter((member) => uids.has(member.uid)).length >= quorumOf(view);
}
