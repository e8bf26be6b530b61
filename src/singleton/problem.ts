/** Why nobody hosts a singleton, and why a question to it got no reply: sentences for people. */
import { readRegistration, spawnKey } from './spawn_registration.ts';
import { retires } from '../cluster/full_shutdown.ts';
import type { Member, MembershipView } from '../cluster/member.ts';
import { hostOf, roleOf } from './host.ts';
import type { SenderStream } from './sender_stream.ts';

/** The member that says it hosts `name`; of several the one with the highest epoch. */
export function claimant(view: MembershipView, name: string): Member | undefined {
  let best: Member | undefined;
  for (const member of view.members) {
    const claim = member.hosting.get(name);
    if (claim !== undefined && (best === undefined || claim.epoch > best.hosting.get(name)!.epoch)) best = member;
  }
  return best;
}

/** What keeps `name` from being hosted; undefined when a member says that it hosts it. `lease`: what this node lacks. */
export function hostingProblem(view: MembershipView, name: string, lease: string | undefined): string | undefined {
  if (claimant(view, name) !== undefined) return undefined;
  const next = hostOf(view, name);
  if (lease !== undefined) return `${next?.address ?? view.self.address} waits for its lease: ${lease}`;
  if (next !== undefined && retires(view, next)) return 'the whole cluster is about to be shut down';
  if (next !== undefined) return `${next.address} is about to host it`;
  const registered = readRegistration(view.entries.get(spawnKey(name)));
  if (registered !== undefined) {
    const role = registered.role === undefined ? '' : ` and carries the role ${registered.role}`;
    return `no member that is up has the kind ${registered.kind}${role}`;
  }
  const started = view.members.some((member) => member.status === 'up' && member.started.has(name));
  return started ? `no member that has started it carries the role ${roleOf(view, name)}` : 'no member has started it';
}

/** For a question that was told through this node's stream and has had no reply so far. */
export function replyProblem(
  view: MembershipView,
  name: string,
  lease: string | undefined,
  stream: Pick<SenderStream, 'target' | 'buffered'>,
): string {
  const problem = hostingProblem(view, name, lease);
  if (problem !== undefined) return problem;
  const host = claimant(view, name)!;
  if (!host.reachable) return `its host ${host.address} is not reachable`;
  if (stream.target?.uid !== host.uid) return `its host ${host.address} has not taken messages of this node yet`;
  if (stream.buffered === 0) {
    return `its host ${host.address} has handled it and did not answer, or failed at it, which its log says`;
  }
  return `its host ${host.address} has not handled ${stream.buffered} messages of this node`;
}
