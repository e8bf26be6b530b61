/** Drives `seeding.ts` over the network until this node is in a cluster. */
import type { Cancel } from '../actor/environment.ts';
import { closeCodes } from '../transport/close_codes.ts';
import type { Address, PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { limits } from '../limits.ts';
import { codes } from '../wire/codes.ts';
import { Alarm } from './alarm.ts';
import { canonicalText } from './canonical.ts';
import { decode, decodeRecord, encodeRecord } from './gossip_codec.ts';
import type { MemberRecord } from './gossip_state.ts';
import type { SeedReason } from './join_error.ts';
import { JoinReminder } from './join_reminder.ts';
import type { Member } from './member.ts';
import { selfRecord } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import { startSeeding, stepSeeding } from './seeding.ts';
import { missingText, seedReasons } from './seeding_report.ts';
import {
  founds,
  type Seeding,
  type SeedingEffect,
  type SeedingEvent,
  type SeedingSettings,
  type SeedingStep,
  seedingTimes,
} from './seeding_state.ts';
import { countOf, fail, flagOf, proseOf } from './wire_checks.ts';

/** Milliseconds without any answer after which a link that carries questions is given up for a new one. */
const silentLinkMs = 2_000;

export class JoinProcess {
  #node: NodeContext;
  #seeding: Seeding | undefined;
  #alarm: Alarm;
  #reminder: JoinReminder | undefined;
  #asking = new Set<Cancel>();
  /** By address: since when questions there have had no answer. */
  #silentSince = new Map<Address, number>();

  constructor(node: NodeContext) {
    this.#node = node;
    this.#alarm = new Alarm(node.environment, () => this.#step({ kind: 'tick' }));
  }

  /** Starting again does nothing. */
  start(): void {
    if (this.#seeding !== undefined || this.#node.membership().phase !== 'outside') return;
    const { settings, environment, address } = this.#node;
    const seeding = {
      selfAddress: address,
      selfUid: settings.uid,
      seeds: settings.seeds,
      selfElection: settings.selfElection ?? 'cold-start',
      clusterName: settings.clusterName,
      protocol: settings.protocol,
      fingerprint: settings.fingerprint,
      ...rivalry(this.#node),
    };
    this.#reminder = new JoinReminder(environment.clock.now());
    this.#run(startSeeding(seeding, environment.clock.now(), environment.random.next()));
    if (typeof seeding.selfElection === 'number') this.#alarm.at(environment.clock.now() + seeding.selfElection);
  }

  stop(): void {
    this.#alarm.cancel();
    for (const cancel of this.#asking) cancel();
    this.#asking.clear();
  }

  /** What this node waits for, and why each seed did not help. */
  missing(): string {
    return this.#seeding === undefined ? 'not started' : missingText(this.#seeding);
  }

  /** False where others that look for the cluster need not wait for this node to found it. */
  founds(): boolean {
    return this.#seeding === undefined || founds(this.#seeding);
  }

  reasons(): readonly SeedReason[] {
    return this.#seeding === undefined ? [] : seedReasons(this.#seeding);
  }

  pledgeRequested(from: PeerIdentity, envelope: Envelope): void {
    this.#silentSince.delete(from.address);
    const nonce = decode(() => countOf(envelope[1], 'nonce'));
    if ('refused' in nonce) return this.#node.count('refused pledge');
    if (this.#node.membership().phase !== 'outside') {
      return this.#node.send(from.address, [codes.pledgeAnswer, nonce.value, false, null]);
    }
    this.#step({ kind: 'pledge-request', from, nonce: nonce.value });
  }

  pledgeAnswered(from: PeerIdentity, envelope: Envelope): void {
    this.#silentSince.delete(from.address);
    const answer = decode(() => ({
      nonce: countOf(envelope[1], 'nonce'),
      pledge: flagOf(envelope[2], 'granted') ? claimOf(envelope[3], from) : undefined,
    }));
    if ('refused' in answer) return this.#node.count('refused pledge');
    this.#step({ kind: 'pledge-answer', from, ...answer.value });
  }

  joinRefused(from: PeerIdentity, envelope: Envelope): void {
    this.#silentSince.delete(from.address);
    const why = decode(() => proseOf(envelope[1], 1_024, 'reason'));
    if ('refused' in why || this.#node.membership().phase !== 'outside') return;
    if (envelope[2] === true) this.#node.dispatch({ kind: 'end', why: why.value, selfDown: true, rejoin: true });
    else this.#step({ kind: 'join-refused', from, why: why.value });
  }

  /** Whoever was dialled answered and said no: another secret, another cluster, another version. */
  dialRejected(address: Address, detail: string): void {
    this.#step({ kind: 'join-refused', from: { address }, why: detail });
  }

  invited(from: PeerIdentity): void {
    this.#step({ kind: 'invited', from });
  }

  #step(event: SeedingEvent): void {
    if (this.#seeding === undefined || this.#node.membership().phase !== 'outside') return;
    const { clock, random } = this.#node.environment;
    this.#run(stepSeeding(this.#seeding, event, clock.now(), random.next()));
  }

  #run({ state, effects }: SeedingStep): void {
    this.#seeding = state;
    for (const effect of effects) this.#perform(effect);
    this.#remind();
  }

  #remind(): void {
    const { environment } = this.#node;
    if (this.#node.membership().phase !== 'outside') return;
    const forMs = this.#reminder?.due(environment.clock.now());
    if (forMs === undefined) return;
    const seeds = this.reasons().map(({ seed, why }) => `${seed}: ${why}`);
    environment.log.warn(`not in a cluster yet: ${this.missing()}`, { forMs, seeds });
  }

  #perform(effect: SeedingEffect): void {
    const { settings, environment } = this.#node;
    const self = selfRecord(this.#node.membership());
    switch (effect.kind) {
      case 'ask':
        return this.#ask(effect.seed);
      case 'request-pledge':
        return this.#question(effect.to, [codes.pledgeRequest, effect.nonce]);
      case 'answer-pledge': {
        const record = effect.granted ? encodeRecord(self) : null;
        if (effect.granted) this.#alarm.at(environment.clock.now() + seedingTimes.firstRetry);
        return this.#node.send(effect.to, [codes.pledgeAnswer, effect.nonce, effect.granted, record]);
      }
      case 'join':
        return this.#question(effect.to, [codes.join, encodeRecord(self), settings.fingerprint]);
      case 'form': {
        if (effect.overridden) {
          environment.log.warn('founding a cluster without asking the seeds', { seeds: settings.seeds });
        }
        const formedAt = Math.max(0, Math.floor(environment.clock.wall()));
        const clusterId = `${settings.uid}`;
        return this.#node.dispatch({ kind: 'form', clusterId, formedAt, founders: effect.founders });
      }
      case 'warn':
        return environment.log.warn(effect.text);
      case 'wake':
        return this.#alarm.at(effect.at);
      default:
        effect satisfies never;
    }
  }

  /**
   * Before there are heartbeats nothing else notices a link on which nothing arrives. Both ends take a new one into use,
   * also where one of them still believes in the old one.
   */
  #question(to: Address, envelope: Envelope): void {
    const now = this.#node.environment.clock.now();
    const since = this.#silentSince.get(to) ?? now;
    const silent = now - since >= silentLinkMs;
    if (silent) this.#node.peers.disconnect(to, closeCodes.unsettled, 'no answer while looking for a cluster');
    this.#silentSince.set(to, silent ? now : since);
    this.#node.send(to, envelope);
  }

  #ask(seed: string): void {
    let done = false;
    const cancel = this.#node.settings.transport.seed(seed, (outcome) => {
      done = true;
      this.#asking.delete(cancel);
      this.#step({ kind: 'answer', seed, outcome });
      this.#alarm.at(this.#seeding?.nextRoundAt ?? Infinity);
    });
    if (!done) this.#asking.add(cancel);
  }
}

/**
 * A process that lost a split, or was removed, must not found a rival of the cluster that lives on behind a cut: it founds
 * only with a side of that cluster's last members that its strategy would have kept.
 */
function rivalry({ settings, address }: NodeContext): Pick<SeedingSettings, 'witnesses' | 'mayFound'> {
  const { previous, strategy } = settings;
  if (previous === undefined) return {};
  const members = previous.members.filter((member) => member.status !== 'removed');
  const witnesses = [...new Set([...previous.via, ...members.map((member) => member.address)])];
  return {
    witnesses: witnesses.filter((one) => one !== address).slice(0, limits.witnesses),
    mayFound: (present, gone) => {
      const last = members.map((member): Member => {
        // Whoever answers alone has a vote here, however it left that cluster.
        if (present.has(member.address)) return { ...member, status: member.upNumber > 0 ? 'up' : 'joining' };
        return gone.has(member.address) ? { ...member, status: 'down', terminated: true } : member;
      });
      const side = last.filter((member) => present.has(member.address)).map((member) => member.uid);
      return members.length === 0 || strategy.keeps(last, new Set(side));
    },
  };
}

/** What a node may say about itself before it is a member: everything that its link does not already prove. */
export function claimOf(wire: unknown, from: PeerIdentity): MemberRecord {
  const record = decodeRecord(wire);
  if (record.uid !== from.uid) fail('uid', record.uid, 'the uid that the link has proved');
  if (record.address !== from.address) fail('address', record.address, 'the address that the link has proved');
  if (record.runtime !== from.runtime) fail('runtime', record.runtime, 'the one of the handshake');
  if (canonicalText([...record.roles].sort()) !== canonicalText([...from.roles].sort())) {
    fail('roles', record.roles, 'those of the handshake');
  }
  if (record.status !== 'joining' || record.upNumber !== 0) fail('status', record.status, 'joining');
  if (record.selfVersion > limits.counterJump) fail('selfVersion', record.selfVersion, `at most ${limits.counterJump}`);
  return record;
}
