import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerConfig, ManagerEvent, ManagerState } from '../../src/singleton/manager_state.ts';
import type { MembershipView } from '../../src/cluster/member.ts';
import { member, viewOf } from './manager_world.ts';

const record = { generation: 1, role: undefined };
const own = member('a', { upNumber: 1, started: new Map([['x', record]]) });

/** The oldest member beside one that nobody reaches and that is not removed, as with manual downing. */
function besideSilent(config: Partial<ManagerConfig>) {
  let state: ManagerState = initialManager('x', 'a', 'a:1');
  let now = 0;
  const feed = (event: ManagerEvent, view: MembershipView): string[] => {
    const step = manage(state, event, view, now, 0);
    state = step.state;
    return step.effects.map(({ kind }) => kind);
  };
  const split = viewOf([own, member('b', { upNumber: 2, reachable: false })], 'a');
  feed({ kind: 'start', record, config: { ...defaultManagerConfig, ...config } }, split);
  for (now = 500; now < defaultManagerConfig.handOverTimeoutMs; now += 500) {
    assertEquals(feed({ kind: 'timer', timer: 'resend' }, split).includes('start-instance'), false);
  }
  now = defaultManagerConfig.handOverTimeoutMs;
  const effects = feed({ kind: 'timer', timer: 'hand-over-timeout' }, split);
  return { effects, after: (event: ManagerEvent, view: MembershipView) => feed(event, view) };
}

test('R25, A3: host-anyway: beside a silent member it starts after the hand-over timeout, and says that two are possible', () => {
  const { effects } = besideSilent({ handOverPolicy: 'host-anyway' });
  assertEquals(effects.filter((kind) => kind === 'hosted-anyway' || kind === 'start-instance'), [
    'hosted-anyway',
    'start-instance',
  ]);
});

test('wait-for-removal: it does not start before the silent member is removed', () => {
  const { effects, after } = besideSilent({ handOverPolicy: 'wait-for-removal' });
  assertEquals(effects.filter((kind) => kind === 'hosted-anyway' || kind === 'start-instance'), []);
  assertEquals(after({ kind: 'view' }, viewOf([own], 'a')).includes('start-instance'), true);
});
