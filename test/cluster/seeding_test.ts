import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { startSeeding, stepSeeding } from '../../src/cluster/seeding.ts';
import { missingText, seedReasons } from '../../src/cluster/seeding_report.ts';
import {
  founds,
  type Seeding,
  type SeedingEffect,
  type SeedingEvent,
  type SeedingSettings,
  seedingTimes,
} from '../../src/cluster/seeding_state.ts';
import type { DialFailure, PeerIdentity, SeedAnswer } from '../../src/transport/contract.ts';
import { record } from './support/gossip_samples.ts';

const seeds = ['h1:1', 'h2:1', 'h3:1'];

function settings(selfAddress: string, extra: Partial<SeedingSettings> = {}): SeedingSettings {
  return {
    selfAddress,
    selfUid: `uid-${selfAddress}`,
    seeds,
    selfElection: 'cold-start',
    clusterName: 'c',
    protocol: 1,
    fingerprint: 'f',
    ...extra,
  };
}

function alone(address: string, extra: Partial<SeedAnswer> = {}): SeedAnswer {
  return {
    clusterName: 'c',
    protocol: 1,
    fingerprint: 'f',
    address,
    uid: `uid-${address}`,
    clusterId: undefined,
    formedAt: undefined,
    members: [],
    ...extra,
  };
}

const clustered = (address: string, members: readonly string[] = [address]): SeedAnswer =>
  alone(address, { clusterId: 'id', formedAt: 1, members });
const refused: DialFailure = { reason: 'refused', code: 'x', detail: '' };
const silent: DialFailure = { reason: 'timeout', code: 'x', detail: 'no answer' };

/** A node to which things happen. */
class Node {
  state: Seeding;
  effects: SeedingEffect[] = [];
  now = 0;

  constructor(address: string, extra: Partial<SeedingSettings> = {}) {
    const { state, effects } = startSeeding(settings(address, extra), 0, 0.5);
    this.state = state;
    this.effects.push(...effects);
  }

  do(event: SeedingEvent, now = this.now): SeedingEffect[] {
    this.now = now;
    const { state, effects } = stepSeeding(this.state, event, now, 0.5);
    this.state = state;
    this.effects.push(...effects);
    return [...effects];
  }

  /** One round in which every other seed answers as given. */
  round(answers: Record<string, SeedAnswer | DialFailure>, now: number): SeedingEffect[] {
    this.now = now;
    if (this.state.pending.size === 0) this.do({ kind: 'tick' }, Math.max(now, this.state.nextRoundAt));
    const effects: SeedingEffect[] = [];
    for (const [seed, outcome] of Object.entries(answers)) effects.push(...this.do({ kind: 'answer', seed, outcome }));
    return effects;
  }
}

const peer = (address: string, uid = `uid-${address}`): PeerIdentity => ({
  address,
  uid,
  clusterName: 'c',
  roles: [],
  runtime: 'memory',
});
const of = <K extends SeedingEffect['kind']>(effects: readonly SeedingEffect[], kind: K) =>
  effects.filter((effect): effect is Extract<SeedingEffect, { kind: K }> => effect.kind === kind);
const later = seedingTimes.listenFirst + 100;
const pledge = (address: string) => record('b', 'joining', 0, { uid: `uid-${address}`, address });

describe('rule 5', () => {
  test('an empty list, or only this node, forms at once', () => {
    assertEquals(of(new Node('h1:1', { seeds: [] }).effects, 'form').length, 1);
    assertEquals(of(new Node('h1:1', { seeds: ['h1:1'] }).effects, 'form').length, 1);
  });

  test('a seed that is in a cluster is joined, the oldest member first, then the others in turn', () => {
    const node = new Node('h9:1');
    const first = node.do({ kind: 'answer', seed: 'h2:1', outcome: clustered('h2:1', ['h5:1', 'h6:1']) });
    assertEquals(of(first, 'join').map(({ to }) => to), ['h5:1']);
    const tried = ['h5:1'];
    for (let i = 1; i < 6; i++) {
      tried.push(...of(node.do({ kind: 'tick' }, i * seedingTimes.joinRetry), 'join').map(({ to }) => to));
    }
    assertEquals(tried, ['h5:1', 'h6:1', 'h2:1', 'h5:1', 'h6:1', 'h2:1']);
    assertEquals(of(node.do({ kind: 'tick' }, seedingTimes.joinGiveUp), 'ask').length, 3);
  });

  test('S2: nobody waits for a seed that will never found, and such a one pledges', () => {
    for (const founds of [undefined, true, false]) {
      const answers = { 'h1:1': alone('h1:1', founds === undefined ? {} : { founds }), 'h3:1': alone('h3:1') };
      const node = new Node('h2:1');
      node.round(answers, 0);
      node.do({ kind: 'tick' }, seedingTimes.listenFirst);
      node.round(answers, seedingTimes.listenFirst);
      assertEquals(of(node.effects, 'request-pledge').length > 0, founds === false, String(founds));
    }
    const never = new Node('h1:1', { selfElection: 'never' });
    never.round({ 'h2:1': alone('h2:1'), 'h3:1': alone('h3:1') }, 0);
    const elsewhere = new Node('h0:1');
    elsewhere.round({ 'h1:1': alone('h1:1'), 'h2:1': alone('h2:1'), 'h3:1': alone('h3:1') }, 0);
    for (const [node, will] of [[never, false], [elsewhere, false], [new Node('h1:1'), true]] as const) {
      assertEquals(founds(node.state), will);
      if (will) continue;
      const answer = node.do({ kind: 'pledge-request', from: peer('h2:1'), nonce: 1 });
      assertEquals(of(answer, 'answer-pledge').map(({ granted }) => granted), [true]);
    }
    // As long as it does not know whether a seed that is spelt otherwise is itself, it may be the first.
    assertEquals(founds(new Node('h9:1').state), true);
  });

  test('R108: the first in address order asks for pledges once a majority is there, and forms with a majority of them', () => {
    const node = new Node('h1:1');
    node.round({ 'h2:1': alone('h2:1'), 'h3:1': silent }, 10);
    assertEquals(of(node.effects, 'request-pledge'), [], 'not before it has listened for a living cluster');
    const asked = node.round({ 'h2:1': alone('h2:1'), 'h3:1': silent }, later);
    assertEquals(of(asked, 'request-pledge').map(({ to }) => to), ['h2:1']);
    const nonce = of(asked, 'request-pledge')[0]?.nonce ?? 0;
    const formed = node.do({ kind: 'pledge-answer', from: peer('h2:1'), nonce, pledge: pledge('h2:1') });
    assertEquals(of(formed, 'form').map(({ founders }) => founders.map(({ uid }) => uid)), [['uid-h2:1']]);
  });

  test('R108: others never ask, and silence and refusal are no answers', () => {
    const second = new Node('h2:1');
    assertEquals(of(second.round({ 'h1:1': alone('h1:1'), 'h3:1': alone('h3:1') }, later), 'request-pledge'), []);
    const lonely = new Node('h1:1');
    for (let i = 1; i < 20; i++) lonely.round({ 'h2:1': refused, 'h3:1': silent }, later + i * 3_000);
    assertEquals(of(lonely.effects, 'request-pledge'), []);
    assertEquals(of(lonely.effects, 'form'), []);
    assertEquals(missingText(lonely.state), '2 of 3 seeds must be there to found a cluster, 1 are');
  });

  test('a node that is not in the list never founds', () => {
    const node = new Node('h0:1');
    assertEquals(
      of(node.round({ 'h1:1': alone('h1:1'), 'h2:1': alone('h2:1'), 'h3:1': alone('h3:1') }, later), 'request-pledge'),
      [],
    );
    assertStringIncludes(missingText(node.state), 'not in the seed list');
  });

  test('pledges are bound to the uid, to the nonce, to the round, and expire', () => {
    const ready = (): [Node, number] => {
      const node = new Node('h1:1');
      const asked = node.round({ 'h2:1': alone('h2:1'), 'h3:1': alone('h3:1') }, later);
      return [node, of(asked, 'request-pledge')[0]?.nonce ?? 0];
    };
    const [restarted, n1] = ready();
    assertEquals(
      of(
        restarted.do({ kind: 'pledge-answer', from: peer('h2:1', 'another'), nonce: n1, pledge: pledge('h2:1') }),
        'form',
      ),
      [],
    );
    const [old, n2] = ready();
    assertEquals(
      of(old.do({ kind: 'pledge-answer', from: peer('h2:1'), nonce: n2 - 1, pledge: pledge('h2:1') }), 'form'),
      [],
    );
    const [late, n3] = ready();
    const tooLate = later + seedingTimes.pledgeUsable + 1;
    assertEquals(
      of(late.do({ kind: 'pledge-answer', from: peer('h2:1'), nonce: n3, pledge: pledge('h2:1') }, tooLate), 'form'),
      [],
    );
    const [refusedOne, n4] = ready();
    assertEquals(
      of(refusedOne.do({ kind: 'pledge-answer', from: peer('h2:1'), nonce: n4, pledge: undefined }), 'form'),
      [],
    );
  });

  test('a node pledges to one candidate at a time, and never to one that ranks after it', () => {
    const node = new Node('h3:1');
    const ask = (from: PeerIdentity, now: number): boolean | undefined =>
      of(node.do({ kind: 'pledge-request', from, nonce: 1 }, now), 'answer-pledge')[0]?.granted;
    assertEquals(ask(peer('h4:1'), 0), false);
    assertEquals(ask(peer('h2:1'), 0), true);
    assertEquals(ask(peer('h1:1'), 10), false);
    assertEquals(ask(peer('h2:1'), 20), true);
    assertEquals(ask(peer('h2:1', 'restarted'), 30), true);
    assertEquals(ask(peer('h1:1'), 30 + seedingTimes.pledge), true);
  });

  test('who has pledged is no candidate itself', () => {
    const node = new Node('h2:1');
    node.do({ kind: 'pledge-request', from: peer('h1:1'), nonce: 1 }, later);
    assertEquals(of(node.round({ 'h1:1': silent, 'h3:1': alone('h3:1') }, later + 10), 'request-pledge'), []);
  });

  test('who is joining a cluster pledges to nobody', () => {
    const node = new Node('h3:1');
    node.do({ kind: 'answer', seed: 'h1:1', outcome: clustered('h1:1') });
    assertEquals(
      of(node.do({ kind: 'pledge-request', from: peer('h2:1'), nonce: 1 }), 'answer-pledge')[0]?.granted,
      false,
    );
  });

  test('a cluster that answers ends a candidacy', () => {
    const node = new Node('h1:1');
    const asked = node.round({ 'h2:1': alone('h2:1'), 'h3:1': silent }, later);
    const nonce = of(asked, 'request-pledge')[0]?.nonce ?? 0;
    node.do({ kind: 'invited', from: peer('h7:1') });
    assertEquals(of(node.do({ kind: 'pledge-answer', from: peer('h2:1'), nonce, pledge: pledge('h2:1') }), 'form'), []);
    assertEquals(of(node.effects, 'join').map(({ to }) => to), ['h7:1']);
  });

  test('FB-067: a seed that turns out to be this node under another name counts as itself', () => {
    const node = new Node('127.0.0.1:1', { seeds: ['localhost:1'] });
    const self = alone('127.0.0.1:1');
    assertEquals(of(node.do({ kind: 'answer', seed: 'localhost:1', outcome: self }), 'form').length, 1);
  });
});

describe('selfElection', () => {
  test("'immediate' forms at once and says so", () => {
    const forms = of(new Node('h1:1', { selfElection: 'immediate' }).effects, 'form');
    assertEquals(forms.map(({ overridden }) => overridden), [true]);
  });

  test("'never' forms in no case", () => {
    const node = new Node('h1:1', { selfElection: 'never', seeds: ['h1:1'] });
    node.do({ kind: 'tick' }, 100_000);
    assertEquals(of(node.effects, 'form'), []);
  });

  test('a number forms alone after that time, when nobody is in a cluster', () => {
    const node = new Node('h1:1', { selfElection: 2_000 });
    node.round({ 'h2:1': refused, 'h3:1': refused }, 50);
    node.do({ kind: 'tick' }, 1_999);
    assertEquals(of(node.effects, 'form'), []);
    node.round({ 'h2:1': refused, 'h3:1': refused }, 2_001);
    assertEquals(of(node.effects, 'form').map(({ overridden }) => overridden), [true]);
  });
});

describe('what goes wrong', () => {
  test('R100: mismatches are explained once, with both values, and never joined', () => {
    const cases: readonly (readonly [Partial<SeedAnswer>, string])[] = [
      [{ clusterName: 'other' }, 'its clusterName is other, here it is c'],
      [{ protocol: 2 }, 'its protocol is 2, here it is 1'],
      [{ fingerprint: 'f; a=1' }, 'its settings differ: a: unset here, 1 there'],
    ];
    for (const [extra, text] of cases) {
      const node = new Node('h1:1');
      for (let i = 0; i < 3; i++) {
        node.round({ 'h2:1': { ...clustered('h2:1'), ...extra }, 'h3:1': refused }, i * 3_000);
      }
      assertEquals(of(node.effects, 'join'), []);
      assertEquals(of(node.effects, 'warn').map((effect) => effect.text), [`h2:1: ${text}`]);
      assertEquals(seedReasons(node.state).map(({ why }) => why), ['is this node', text, 'refused']);
    }
  });

  test('a seed that turns this node away is the whole reason, also where it founds nothing itself', () => {
    const rejected: DialFailure = { reason: 'rejected', code: 'secret', detail: 'its secret is another' };
    for (const extra of [{}, { selfElection: 'never' as const }]) {
      const node = new Node('h9:1', { seeds: ['h1:1'], ...extra });
      assertStringIncludes(missingText(node.state), 'no seed is in a cluster yet');
      node.round({ 'h1:1': rejected }, 10);
      assertEquals(missingText(node.state), 'h1:1: its secret is another');
    }
    const listed = new Node('h1:1');
    listed.round({ 'h2:1': rejected, 'h3:1': refused }, later);
    assertEquals(
      missingText(listed.state),
      '2 of 3 seeds must be there to found a cluster, 1 are; h2:1: its secret is another',
    );
  });

  test('a refused join is explained once and tried again', () => {
    const node = new Node('h9:1');
    node.do({ kind: 'answer', seed: 'h1:1', outcome: clustered('h1:1') });
    node.do({ kind: 'join-refused', from: peer('h1:1'), why: 'full' });
    assertEquals(of(node.effects, 'warn').length, 1);
    assert(node.state.joining === undefined);
    assertEquals(missingText(node.state), 'h1:1: full', 'nothing is said about clusters it was not let into');
    assertStringIncludes(
      missingText({ ...node.state, joining: { targets: ['h1:1'], attempt: 0, nextAt: 0, giveUpAt: 0 } }),
      'h1:1: full',
    );
  });

  test('retries are spread and grow to two seconds', () => {
    const node = new Node('h1:1');
    const gaps: number[] = [];
    let now = 0;
    for (let i = 0; i < 40; i++) {
      node.round({ 'h2:1': refused, 'h3:1': refused }, now);
      gaps.push(Math.round(node.state.nextRoundAt - node.now));
      now = node.state.nextRoundAt;
    }
    assertEquals(gaps[0], 100);
    assertEquals(gaps.at(-1), 2_000);
    assert(gaps.every((gap) => gap <= 2_500));
  });
});
