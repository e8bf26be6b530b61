/** Who hosts a singleton: one pure function of the view, so that every node computes the same answer. */
import { type Member, type MembershipView } from '../cluster/member.ts';

/** Key of the cluster entry that pins a singleton to a member (an operator's move). */
export function pinKey(name: string): string {
  return `pin:${name}`;
}

/** The uid an operator pinned `name` to, if any. */
export function pinnedUid(view: MembershipView, name: string): string | undefined {
  const value = view.entries.get(pinKey(name))?.value;
  return typeof value === 'string' ? value : undefined;
}

/** The role that counts for `name`: that of its oldest starter (up members first, then anyone who says so). */
export function roleOf(view: MembershipView, name: string): string | undefined {
  for (const member of view.members) {
    if (member.status === 'up' && member.started.has(name)) return member.started.get(name)?.role;
  }
  return view.self.started.get(name)?.role;
}

export function carriesRole(member: Member, role: string | undefined): boolean {
  return role === undefined || member.roles.includes(role);
}

/** `up` members that have started `name` and carry its role, in the order in which they would host: pin, then age. */
export function eligibleHosts(view: MembershipView, name: string): Member[] {
  const role = roleOf(view, name);
  const eligible = view.members.filter((member) =>
    member.status === 'up' && member.started.has(name) && carriesRole(member, role)
  );
  const pin = pinnedUid(view, name);
  const pinned = eligible.findIndex((member) => member.uid === pin);
  if (pinned > 0) eligible.unshift(...eligible.splice(pinned, 1));
  return eligible;
}

/** The member that should host `name` in this view. Unreachability plays no part: it moves nothing. */
export function hostOf(view: MembershipView, name: string): Member | undefined {
  return eligibleHosts(view, name)[0];
}

/**
 * May a member that asks this node to stand down be obeyed? It must be `up` here and come before this node in hosting
 * order, or this node must itself be out of the running.
 */
export function mayBeNextHost(view: MembershipView, name: string, askerUid: string): boolean {
  const asker = view.members.find((member) => member.uid === askerUid);
  if (!asker || asker.status !== 'up') return false;
  const self = view.self;
  const selfEligible = self.status === 'up' && self.started.has(name) && carriesRole(self, roleOf(view, name));
  if (!selfEligible) return true;
  const pin = pinnedUid(view, name);
  if (pin === asker.uid) return true;
  if (pin === self.uid) return false;
  return view.members.indexOf(asker) < view.members.findIndex((member) => member.uid === self.uid);
}
