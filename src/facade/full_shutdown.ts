/** `cluster.prepareForFullShutdown` and `cancelFullShutdown`: the waiting, and what can be wrong. */
import { checkOptions, type Rules, rules } from '../actor/options.ts';
import { anyRetires, retireAll, retireNobody } from '../cluster/full_shutdown.ts';
import type { MembershipView } from '../cluster/member.ts';
import type { ClusterNode } from '../cluster/node.ts';
import { ClusterStateError } from './state_error.ts';

/** How `cluster.prepareForFullShutdown` waits. */
export interface FullShutdownOptions {
  /** How long it waits for every member to know. Default 10 000. */
  readonly timeoutMs?: number;
}

/** How often it looks whether all members know. */
const lookMs = 10;

const optionRules: Rules<FullShutdownOptions> = { timeoutMs: rules.durationMs(1) };

/** Asks nobody: an entry of the cluster's state goes round, and `converged` says that all have it. */
export function prepareForFullShutdown(node: ClusterNode, options: FullShutdownOptions): Promise<void> {
  checkOptions('FullShutdownOptions', options, optionRules);
  checkMember(node);
  const { timeoutMs = 10_000 } = options;
  retireAll(node);
  node.environment.log.info('the whole cluster is about to be shut down: no singleton starts on its members any more');
  const { clock, timers } = node.environment;
  const until = clock.now() + timeoutMs;
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (node.view().converged) return resolve();
      if (clock.now() < until) return void timers.set(Math.min(lookMs, until - clock.now()), look);
      const missing = missingOf(node.view()).join(', ');
      reject(new ClusterStateError(`not every member knows of the full shutdown after ${timeoutMs} ms: ${missing}`));
    };
    look();
  });
}

export function cancelFullShutdown(node: ClusterNode): boolean {
  checkMember(node);
  if (!anyRetires(node.view())) return false;
  retireNobody(node);
  node.environment.log.info('the shutdown of the whole cluster is called off');
  return true;
}

function checkMember(node: ClusterNode): void {
  if (node.ended() !== undefined) throw new ClusterStateError('this node is out of the cluster');
}

/** Who keeps it from being known to all: those out of reach, or else any of the others. */
function missingOf({ members, self }: MembershipView): readonly string[] {
  const others = members.filter(({ uid, status }) => uid !== self.uid && status !== 'down');
  const unreachable = others.filter(({ reachable }) => !reachable);
  return (unreachable.length > 0 ? unreachable : others).map(({ address }) => address);
}
