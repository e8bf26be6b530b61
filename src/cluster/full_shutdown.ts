/**
 * The whole cluster goes down: an entry of the cluster's state says up to which age its members retire. A member that joins
 * later has a higher number and is not meant, so that a cluster which is started again meanwhile works as ever.
 */
import type { MembershipNode } from './contract.ts';
import type { Member, MembershipView } from './member.ts';

const shutdownKey = 'full-shutdown';

/** Will this member go down with all the others? Such a one goes on with what it hosts, and begins nothing. */
export function retires({ entries }: MembershipView, { upNumber }: Pick<Member, 'upNumber'>): boolean {
  const last = entries.get(shutdownKey)?.value;
  return typeof last === 'number' && upNumber > 0 && upNumber <= last;
}

export function anyRetires(view: MembershipView): boolean {
  return view.members.some((member) => retires(view, member));
}

export function retireAll(node: MembershipNode): void {
  node.writeEntry(shutdownKey, Math.max(...node.view().members.map(({ upNumber }) => upNumber)));
}

export function retireNobody(node: MembershipNode): void {
  node.writeEntry(shutdownKey, null);
}
