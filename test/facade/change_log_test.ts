import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { MembershipView } from '../../src/cluster/member.ts';
import type { MemberChange } from '../../src/cluster/contract.ts';
import { LevelLogger } from '../../src/actor/logger.ts';
import { logChanges } from '../../src/facade/change_log.ts';

const member = (status: string) => ({ address: 'a:1', uid: 'u', status, upNumber: 3 }) as never;

test('one line for each change, with from and to; none for what is told elsewhere', () => {
  const lines: unknown[] = [];
  let tell: (view: MembershipView, changes: readonly MemberChange[]) => void = () => {};
  logChanges(
    {
      onChange: (listener) => {
        tell = listener;
        return () => {};
      },
    },
    new LevelLogger('info', (severity, message, fields) => lines.push([severity, message, fields])),
  );
  tell({} as never, [
    { kind: 'member', before: undefined, member: member('joining') },
    { kind: 'member', before: member('joining'), member: member('up') },
    { kind: 'member', before: member('up'), member: member('up') },
    { kind: 'reachability', member: member('up'), reachable: false },
    { kind: 'reachability', member: member('up'), reachable: true },
    { kind: 'leader', leader: member('up') },
    { kind: 'leader', leader: undefined },
    { kind: 'entry', key: 'k' },
    { kind: 'self-up' },
  ]);
  const who = { address: 'a:1', uid: 'u' };
  assertEquals(lines, [
    ['info', 'a member has changed', { ...who, from: null, to: 'joining', upNumber: 3 }],
    ['info', 'a member has changed', { ...who, from: 'joining', to: 'up', upNumber: 3 }],
    ['warn', 'a member is unreachable', who],
    ['info', 'a member is reachable again', who],
    ['info', 'the leader has changed', { from: null, to: 'a:1' }],
    ['info', 'the leader has changed', { from: 'a:1', to: null }],
  ]);
});
