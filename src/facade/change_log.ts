/** The log of what membership does, as this node sees it: one line for each change, with from and to. */
import type { Cancel, Logger } from '../actor/environment.ts';
import type { MemberChange, MembershipNode } from '../cluster/contract.ts';
import type { Address } from '../transport/contract.ts';

export function logChanges(node: Pick<MembershipNode, 'onChange'>, log: Logger): Cancel {
  let leader: Address | undefined;
  return node.onChange((_view, changes) => {
    for (const change of changes) {
      if (change.kind !== 'leader') logChange(change, log);
      else {
        const { leader: next } = change;
        log.info('the leader has changed', { from: leader ?? null, to: next?.address ?? null });
        leader = next?.address;
      }
    }
  });
}

function logChange(change: MemberChange, log: Logger): void {
  if (change.kind === 'member') {
    const { before, member: { address, uid, status, upNumber } } = change;
    if (before?.status === status) return;
    log.info('a member has changed', { address, uid, from: before?.status ?? null, to: status, upNumber });
  } else if (change.kind === 'reachability') {
    const { address, uid } = change.member;
    if (change.reachable) log.info('a member is reachable again', { address, uid });
    else log.warn('a member is unreachable', { address, uid });
  }
}
