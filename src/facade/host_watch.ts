/** Who hosts what in a view, and what changed since the last one: how a node sees moves that it takes no part in. */
import type { HostingClaim, MembershipView } from '../cluster/member.ts';
import type { InspectionEvent } from '../http/inspection.ts';
import { claimant } from '../singleton/problem.ts';
import type { Address } from '../transport/contract.ts';

export interface PresentHost {
  readonly address: Address;
  readonly claim: HostingClaim;
}

/** The claim with the highest epoch counts: an older one is on its way out, or cut off. */
export function presentHost(view: MembershipView, name: string): PresentHost | undefined {
  const member = claimant(view, name);
  return member && { address: member.address, claim: member.hosting.get(name)! };
}

interface Seen {
  readonly address: Address;
  readonly epoch: number;
  /** When it was no longer seen; undefined while it is. Milliseconds of the monotonic clock. */
  readonly goneAt: number | undefined;
}

/** Of one node; fed with each of its views. */
export class HostWatch {
  readonly #seen = new Map<string, Seen>();

  /** Moves between other nodes, and from this one; what starts here tells of itself. */
  update(view: MembershipView, now: number): readonly Omit<InspectionEvent, 'at'>[] {
    const names = new Set(this.#seen.keys());
    for (const { hosting } of view.members) for (const name of hosting.keys()) names.add(name);
    return [...names].flatMap((name) => {
      const event = this.#compare(name, presentHost(view, name), view.self.address, now);
      return event === undefined ? [] : [event];
    });
  }

  /** The last host that was seen, for one that starts here and was not told whom it follows. */
  before(name: string, now: number): { readonly from: Address; readonly gapMs?: number } | undefined {
    const seen = this.#seen.get(name);
    if (seen === undefined) return undefined;
    return { from: seen.address, ...(seen.goneAt === undefined ? {} : { gapMs: Math.round(now - seen.goneAt) }) };
  }

  #compare(
    name: string,
    host: PresentHost | undefined,
    self: Address,
    now: number,
  ): Omit<InspectionEvent, 'at'> | undefined {
    const before = this.#seen.get(name);
    if (host === undefined) {
      if (before?.goneAt === undefined && before !== undefined) this.#seen.set(name, { ...before, goneAt: now });
      return undefined;
    }
    const { address, claim: { epoch, plannedSince } } = host;
    if (before?.goneAt === undefined && before?.epoch === epoch && before.address === address) return undefined;
    this.#seen.set(name, { address, epoch, goneAt: undefined });
    // The first look finds what has long been there.
    if (before === undefined || address === self || before.epoch === epoch) return undefined;
    const gapMs = before.goneAt === undefined ? undefined : now - before.goneAt;
    const gap = gapMs === undefined ? '' : `, ${Math.round(gapMs)} ms after this node heard of its end`;
    // An unbroken chain of planned moves leads from the instance before to this one.
    const reason = plannedSince <= before.epoch ? 'planned' : 'crash';
    return {
      kind: 'hand-over',
      text: `${name} is hosted by ${address}, before by ${before.address} (${reason}${gap}).`,
      singleton: name,
      address,
      from: before.address,
      reason,
      epoch,
      ...(gapMs === undefined ? {} : { gapMs: Math.round(gapMs) }),
    };
  }
}
