import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { MembershipView } from '../../src/cluster/member.ts';
import { pinKey } from '../../src/singleton/host.ts';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEvent, ManagerState, Verdict } from '../../src/singleton/manager_state.ts';
import { member, viewOf } from './manager_world.ts';

const record = { generation: 1, role: undefined };
const started = new Map([['x', record]]);
const members = ['a', 'b', 'c'].map((uid, at) => member(uid, { upNumber: at + 1, started }));

/** What `a` sees once an operator has moved the singleton to `pin`. */
function pinnedTo(pin: string): MembershipView {
  return viewOf(members, 'a', new Map([[pinKey('x'), { key: pinKey('x'), version: 1, by: 'a', value: pin }]]));
}

/** `a`, and how it answers. */
class Manager {
  state: ManagerState = initialManager('x', 'a', 'a:1');
  view: MembershipView = viewOf(members, 'a');

  feed(event: ManagerEvent): Verdict | undefined {
    const step = manage(this.state, event, this.view, 0, 1_000);
    this.state = step.state;
    return step.effects.find((effect) => effect.kind === 'answer')?.verdict;
  }

  ask(uid: string): Verdict | undefined {
    return this.feed({ kind: 'request', asker: { uid, address: `${uid}:1`, nonce: `${uid}/1` }, epoch: 5_000 });
  }

  host(): number {
    this.feed({ kind: 'start', record, config: defaultManagerConfig });
    for (const uid of ['b', 'c']) {
      const nonce = this.state.phase.kind === 'becoming-host' ? this.state.phase.attempt.nonce : '';
      this.feed({ kind: 'answer', uid, nonce, epochSeen: 0, epochStarted: 0, verdict: { kind: 'not-hosting' } });
    }
    return this.state.phase.kind === 'hosting' ? this.state.phase.epoch : NaN;
  }
}

test('R28: moved to b and at once on to c: what the host left is not withheld from c as if there were nothing', () => {
  const a = new Manager();
  const epoch = a.host();
  a.view = pinnedTo('b');
  assertEquals(a.ask('b')?.kind, 'stopping');
  const ended = a.feed({ kind: 'instance-ended', epoch, cause: 'planned', watermarks: [], state: new Uint8Array(3) });
  assertEquals(ended?.kind, 'handed-over', 'to b, which has given up by now and ignores it');
  assertEquals(a.ask('c')?.kind, 'refused', 'a does not know of the second move yet');
  a.feed({ kind: 'withdrawn', uid: 'b', nonce: 'b/1' });
  a.view = pinnedTo('c');
  a.feed({ kind: 'view' });
  const given = a.ask('c');
  assertEquals(given?.kind === 'handed-over' && [given.result.epoch, given.result.offeredTo], [epoch, []]);
});

test('S3: what an attempt was offered is used only by it: given up, it is free at once; another attempt of its process is not', () => {
  const a = new Manager();
  const epoch = a.host();
  a.view = pinnedTo('b');
  a.ask('b');
  a.feed({ kind: 'instance-ended', epoch, cause: 'planned', watermarks: [], state: null });
  const offered = (given: Verdict | undefined) => given?.kind === 'handed-over' ? given.result.offeredTo : given?.kind;
  a.feed({ kind: 'request', asker: { uid: 'b', address: 'b:1', nonce: 'b/2' }, epoch: 5_000 });
  a.feed({ kind: 'withdrawn', uid: 'b', nonce: 'b/1' });
  a.view = pinnedTo('c');
  assertEquals(offered(a.ask('c')), ['b/2'], 'b may have started from it');
  a.feed({ kind: 'withdrawn', uid: 'b', nonce: 'b/2' });
  const given = a.ask('c');
  assertEquals(offered(given), []);
  assertEquals(given?.kind === 'handed-over' && given.result.givenUp, ['b/1', 'b/2']);
});
