import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { HostingClaim, Member, MembershipView } from '../../src/cluster/member.ts';
import { HostWatch, presentHost } from '../../src/facade/host_watch.ts';

/** `view('a:7:5', 'b')`: a and b are members, and a hosts `jobs` under epoch 7, planned since 5. */
function view(...texts: string[]): MembershipView {
  const members = texts.map((text): Member => {
    const [address = '', epoch, plannedSince = epoch] = text.split(':');
    const claim: HostingClaim = { epoch: Number(epoch), plannedSince: Number(plannedSince), since: 1 };
    return {
      address,
      uid: `uid-${address}`,
      status: 'up',
      roles: [],
      upNumber: 1,
      runtime: 'bun',
      appVersion: '',
      terminated: false,
      reachable: true,
      started: new Map(),
      hosting: new Map(epoch === undefined ? [] : [['jobs', claim]]),
    };
  });
  const self = members.find(({ address }) => address === 'me') ?? members[0]!;
  return { revision: 1, clusterId: 'c', self, leader: self, members, converged: true, entries: new Map() };
}

describe('who hosts it', () => {
  test('the highest epoch counts', () => {
    assertEquals(presentHost(view('a:3', 'b:5', 'c'), 'jobs')?.address, 'b');
    assertEquals(presentHost(view('a'), 'jobs'), undefined);
  });
});

describe('moves of others', () => {
  const run = (...steps: [number, MembershipView][]) => {
    const watch = new HostWatch();
    return steps.flatMap(([now, seen]) => watch.update(seen, now)).map(({ from, address, epoch, gapMs }) => ({
      from,
      address,
      epoch,
      gapMs,
    }));
  };
  test('are told once, with the gap as it is seen from here', () => {
    const moves = run([0, view('me', 'a:1', 'b')], [10, view('me', 'a', 'b')], [15, view('me', 'a', 'b')], [
      52,
      view('me', 'a', 'b:2'),
    ], [60, view('me', 'a', 'b:2')]);
    assertEquals(moves, [{ from: 'a', address: 'b', epoch: 2, gapMs: 42 }]);
  });
  test('at once, without a gap that is seen', () => {
    assertEquals(run([0, view('me', 'a:1')], [9, view('me', 'a', 'b:2')]), [
      { from: 'a', address: 'b', epoch: 2, gapMs: undefined },
    ]);
  });
  test('neither the first sight of a host, nor a start here, nor a claim that comes back', () => {
    assertEquals(run([0, view('me', 'a')], [5, view('me', 'a:1')]), []);
    assertEquals(run([0, view('me', 'a:1')], [5, view('me:2', 'a')]), []);
    assertEquals(run([0, view('me', 'a:1')], [5, view('me', 'a')], [9, view('me', 'a:1')]), []);
  });
  test('planned or not', () => {
    const reasons = (next: string) => {
      const watch = new HostWatch();
      watch.update(view('me', 'a:4'), 0);
      return watch.update(view('me', 'a', next), 1).map(({ reason }) => reason);
    };
    assertEquals([reasons('b:6:4'), reasons('b:6:2'), reasons('b:6:6')], [['planned'], ['planned'], ['crash']]);
  });
  test('whom one that starts here follows', () => {
    const watch = new HostWatch();
    assertEquals(watch.before('jobs', 1), undefined);
    watch.update(view('me', 'a:4'), 5);
    assertEquals(watch.before('jobs', 9), { from: 'a' });
    watch.update(view('me'), 10);
    assertEquals(watch.before('jobs', 52), { from: 'a', gapMs: 42 });
  });
  test('away from here', () => {
    assertEquals(run([0, view('me:1', 'a')], [5, view('me', 'a:2')]), [
      { from: 'me', address: 'a', epoch: 2, gapMs: undefined },
    ]);
  });
});
