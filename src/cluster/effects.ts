/** Carries out what the membership core asks for, all but waking up and ending. */
import { codes } from '../wire/codes.ts';
import type { DeathWatch } from './death_watch.ts';
import type { Gossiper } from './gossiper.ts';
import type { MembershipEffect } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import type { NodeInbox } from './node_inbox.ts';

export interface EffectParts {
  readonly gossiper: Gossiper;
  readonly inbox: NodeInbox;
  readonly deaths: DeathWatch;
}

type Effect = Exclude<MembershipEffect, { kind: 'ended' } | { kind: 'wake' }>;

export function performEffect(effect: Effect, node: NodeContext, { gossiper, inbox, deaths }: EffectParts): void {
  const { log } = node.environment;
  switch (effect.kind) {
    case 'push':
    case 'progress':
      return gossiper.want(effect.kind);
    case 'reply':
      return gossiper.reply(effect.to, effect.about);
    case 'repair':
      return gossiper.repair(effect.to);
    case 'ask':
      return gossiper.ask(effect.to);
    case 'farewell':
      return gossiper.farewell(effect.members);
    case 'notice':
      return inbox.stranger(effect.to, effect.otherCluster);
    case 'contested':
      return deaths.contested(effect.holder);
    case 'refuse-join':
      return node.send(effect.to, [codes.joinRefused, effect.why, effect.final]);
    case 'refused': {
      node.count(`refused ${effect.what}`);
      const { from, why, what, expected } = effect;
      if (expected === true) return log.debug(`refused ${what}`, { why, from: from?.address });
      return inbox.warn(`refused ${what}`, from, why);
    }
    case 'downed': {
      const { address, uid } = effect.record;
      return log.warn('member is down', { address, uid, why: effect.why });
    }
    default:
      effect satisfies never;
  }
}
