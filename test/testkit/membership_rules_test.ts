import { assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { describe, test } from 'node:test';
import type { Member, MembershipView } from '../../src/cluster/member.ts';
import { disagreement, MembershipRules } from '../../src/testkit/membership_rules.ts';
import { SimulationError } from '../../src/testkit/sim_world.ts';

function member(n: number, change: Partial<Member> = {}): Member {
  return {
    address: `10.0.0.${n}:1`,
    uid: `u${n}`,
    status: 'up',
    roles: [],
    upNumber: n,
    runtime: 'memory',
    appVersion: '',
    terminated: false,
    reachable: true,
    started: new Map(),
    hosting: new Map(),
    ...change,
  };
}

let revision = 0;
function view(members: Member[], change: Partial<MembershipView> = {}): MembershipView {
  return {
    revision: ++revision,
    clusterId: 'c',
    self: members[0] ?? member(1),
    leader: members.find((candidate) => candidate.status === 'up'),
    members,
    converged: true,
    entries: new Map(),
    ...change,
  };
}

function breaks(what: string, ...views: MembershipView[]): void {
  const rules = new MembershipRules();
  const last = views.pop();
  for (const each of views) rules.observe(rules, 'n1', each);
  if (last === undefined) throw new Error('no view');
  assertThrows(() => rules.observe(rules, 'n1', last), SimulationError, what);
}

describe('membership rules', () => {
  test('a lawful history passes', () => {
    const rules = new MembershipRules();
    const node = {};
    rules.observe(node, 'n1', view([member(1)]));
    rules.observe(node, 'n1', view([member(1), member(2, { status: 'joining', upNumber: 0 })]));
    rules.observe(node, 'n1', view([member(1), member(2)]));
    rules.observe(node, 'n1', view([member(1, { status: 'leaving' }), member(2)]));
    rules.observe(node, 'n1', view([member(2)]));
  });

  test('age order', () => breaks('age order', view([member(2), member(1)])));
  test('up without a number', () => breaks('without a number', view([member(1, { upNumber: 0 })])));
  test('a number given twice', () => breaks("is u1's", view([member(1), member(2, { upNumber: 1 })])));
  test('a number that changes', () => breaks('was numbered 1', view([member(1)]), view([member(1, { upNumber: 3 })])));
  test('a status that goes back', () => {
    breaks(
      'from leaving back to up',
      view([member(1, { status: 'leaving' }), member(2)]),
      view([member(1), member(2)]),
    );
  });
  test('a tombstone that comes back', () => {
    breaks('came back from removed', view([member(1), member(2)]), view([member(1)]), view([member(1), member(2)]));
  });
  test('a leader that is not the oldest', () => {
    breaks('the oldest up member', view([member(1), member(2)], { leader: member(2) }));
  });
  test('S4: a join that takes the lead', () => {
    breaks('took over', view([member(2)]), view([member(1), member(2)]));
  });
  test('numbers are compared between nodes', () => {
    const rules = new MembershipRules();
    rules.observe({}, 'n1', view([member(1)]));
    assertThrows(() => rules.observe({}, 'n2', view([member(2, { upNumber: 1 })])), SimulationError, "is u1's");
  });
});

describe('disagreement', () => {
  const nodes = (first: MembershipView, second: MembershipView) => [
    { name: 'n1', uid: 'u1', view: first },
    { name: 'n2', uid: 'u2', view: second },
  ];
  const both = () => view([member(1), member(2)]);

  test('none when both see both', () => assertEquals(disagreement(nodes(both(), both())), undefined));
  test('names what is missing', () => {
    const cases: [MembershipView, string][] = [
      [view([member(1)]), 'n2 sees 1 members'],
      [view([member(1), member(2, { status: 'down' })]), '(down, 2)'],
      [view([member(1), member(2, { reachable: false })]), 'unreachable'],
      [view([member(1), member(2)], { converged: false }), 'not converged'],
      [view([member(1), member(2)], { clusterId: 'd' }), 'different clusters'],
      [view([member(1), member(2)], { clusterId: undefined }), 'in no cluster'],
    ];
    for (const [second, what] of cases) assertStringIncludes(disagreement(nodes(both(), second)) ?? '', what);
  });
});
