/** The table of splits: who lives on, member by member, for each strategy. */
import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import {
  DownAll,
  type DowningStrategy,
  KeepMajority,
  KeepOldest,
  KeepReferee,
  ManualDowning,
  StaticQuorum,
} from '../../../src/cluster/downing/mod.ts';
import { membersOf, survivors } from './members.ts';

type Row = readonly [what: string, members: string, split: string, survivors: string, broken?: string];

function table(title: string, strategy: DowningStrategy, rows: readonly Row[]): void {
  describe(title, () => {
    for (const [what, members, split, expected, broken] of rows) {
      test(`${what}: ${members} as ${split}${broken === undefined ? '' : ` without ${broken}`}`, () => {
        assertEquals(survivors(strategy, membersOf(members), split, broken), expected);
      });
    }
  });
}

table('R88 P61: keep majority', new KeepMajority(), [
  ['nobody is lost', 'A B C', 'ABC', 'ABC'],
  ['2|1', 'A B C', 'AB|C', 'AB'],
  ['1|2, the oldest alone', 'A B C', 'A|BC', 'BC'],
  ['4|5', 'A B C D E F G H I', 'ABCD|EFGHI', 'EFGHI'],
  ['FB-075 4|4, the half of the oldest', 'A B C D E F G H', 'ABCD|EFGH', 'ABCD'],
  ['2|2, the oldest on the second side', 'A B C D', 'BC|AD', 'AD'],
  ['1|1', 'A B', 'A|B', 'A'],
  ['three sides without a majority', 'A B C D E', 'AB|CD|E', ''],
  ['three sides, one is half with the oldest', 'A B C D E F', 'ABC|DE|F', 'ABC'],
  ['three sides, one is half without the oldest', 'A B C D E F', 'DEF|AB|C', ''],
  ['joiners may be up over there', 'A B C Dj Ej', 'AB|CDE', ''],
  ['one joiner over there makes a tie', 'A B C Dj', 'AB|CD', 'AB'],
  ['the same without the oldest', 'A B C Dj', 'BC|AD', ''],
  ['a joiner on the winning side lives', 'A B C Dj', 'ABD|C', 'ABD'],
  ['only a joiner is lost', 'A B C Dj', 'ABC|D', 'ABC'],
  ['the founder and one joiner', 'A Bj', 'A|B', 'A'],
  ['the founder and two joiners that may be up', 'A Bj Cj', 'A|BC', ''],
  ['joiners on both sides', 'A B Cj Dj', 'AC|BD', ''],
  ['nobody is up yet: undecided', 'Aj Bj', 'A|B', 'AB'],
  ['a leaving one is lost', 'A B Cl', 'AB|C', 'AB'],
  ['the oldest leaves, its next is on its side', 'Al B C', 'AB|C', 'AB'],
  ['the oldest leaves, its next is on the other side', 'Al B C', 'AC|B', ''],
  ['an exiting one on the winning side', 'A Be C', 'AB|C', 'AB'],
  ['exiting ones still count over there', 'A B Ce De', 'AB|CD', 'AB'],
  ['two leave on one side', 'Al Bl C D', 'ABC|D', 'ABC'],
  ['one leaves on each side', 'A B Cl Dl', 'AC|BD', ''],
  ['all leave', 'Al Bl', 'A|B', ''],
  ['a down member stays in the denominator', 'A B C D Ed', 'AB|CD', ''],
  ['a majority of all, the down one included', 'A B C D Ed', 'ABC|D', 'ABC'],
  ['a down member and a joiner make a tie', 'A B Dj Cd', 'AB|D', 'AB'],
  ['proven dead ones do not count', 'A B C Dt Et', 'AB|C', 'AB'],
  ['proven dead oldest', 'At B C', 'B|C', 'B'],
  ['P57: a broken pair', 'A B C', 'ABC', 'C', 'A-B'],
  ['P58: a split and a broken pair', 'A B C D E', 'ABC|DE', 'A', 'B-C'],
  ['FB-079: one broken pair of five', 'A B C D E', 'ABCDE', 'CDE', 'A-B'],
  ['a star of broken links', 'A B C D E', 'ABCDE', 'DE', 'A-B,A-C'],
  ['every member has a broken link', 'A B C D', 'ABCD', '', 'A-B,C-D'],
  ['a broken pair on the losing side', 'A B C D E', 'ABC|DE', 'ABC', 'D-E'],
  ['a link to a joiner is broken', 'A B Cj', 'ABC', 'B', 'A-C'],
  ['only a joiner would remain', 'A B Cj', 'ABC', '', 'A-B'],
]);

table('R87: keep majority of a role', new KeepMajority({ role: 'db' }), [
  ['the majority of the role', 'A B@db C@db D@db E F', 'ABEF|CD', 'CD'],
  ['a tie goes to the oldest of the role', 'A B@db C@db', 'AC|B', 'B'],
  ['joiners with the role count over there', 'A@db B@db C Dj@db', 'AC|BD', ''],
  ['joiners without the role do not', 'A@db B@db C Dj', 'AC|BD', 'AC'],
  ['nobody has the role: undecided', 'A B C', 'AB|C', 'ABC'],
  ['none of the role on a side', 'A@db B C', 'A|BC', 'A'],
  ['a broken pair of the role', 'A@db B@db C@db D E', 'ABCDE', 'CDE', 'A-B'],
  ['a broken pair without the role', 'A@db B@db C@db D E', 'ABCDE', 'ABC', 'D-E'],
  ['a split and a broken pair of the role', 'A@db B@db C@db D E', 'ABD|CE', 'D', 'A-B'],
  ['one of the role leaves, a tie with the oldest', 'A@db Bl@db C@db D', 'AB|CD', 'AB'],
  ['one of the role exits, a tie without the oldest', 'A@db B@db Ce@db', 'A|BC', ''],
]);

table('R89 FB-077: keep oldest, down if alone', new KeepOldest(), [
  ['3|3', 'A B C D E F', 'ABC|DEF', 'ABC'],
  ['1|1', 'A B', 'A|B', 'A'],
  ['1|2', 'A B C', 'A|BC', 'BC'],
  ['the oldest crashed: the rest lives', 'A B C D E', 'A|BCDE', 'BCDE'],
  ['the oldest is the last one', 'A', 'A', 'A'],
  ['small side with the oldest', 'A B C D E', 'AE|BCD', 'AE'],
  ['alone, and the others are split too', 'A B C D', 'A|BC|D', ''],
  ['the oldest leaves, its next is with it', 'Al B C', 'AB|C', 'AB'],
  ['the oldest leaves, its next is not with it', 'Al B C', 'AC|B', ''],
  ['the oldest leaves alone', 'Al B C D', 'A|BCD', 'BCD'],
  ['joiners may make it alone', 'A Bj Cj', 'A|BC', ''],
  ['a joiner on its side', 'A B Cj', 'AC|B', 'AC'],
  ['a down oldest still counts', 'Ad B C', 'B|C', ''],
  ['a broken pair with the oldest', 'A B C D E', 'ABC|DE', 'C', 'A-B'],
  ['two broken pairs', 'A B C D E', 'ABCDE', 'E', 'A-B,C-D'],
  ['the oldest exits, its next is with it', 'Ae B C', 'AB|C', 'AB'],
  ['the oldest exits, its next is not with it', 'Ae B C', 'AC|B', ''],
  ['the oldest exits alone', 'Ae B C D', 'A|BCD', 'BCD'],
  ['a joiner is not the oldest', 'Aj B C', 'AB|C', 'AB'],
  ['only one that leaves is with the oldest', 'A Bl C D', 'AB|CD', ''],
]);

table('R89: keep oldest, also alone', new KeepOldest({ downIfAlone: false }), [
  ['1|2', 'A B C', 'A|BC', 'A'],
  ['1|2|1', 'A B C D', 'A|BC|D', 'A'],
  ['two joiners', 'A Bj Cj', 'A|BC', 'A'],
  ['all leave', 'Al Bl', 'A|B', ''],
]);

table('R87: keep oldest of a role', new KeepOldest({ role: 'db' }), [
  ['the oldest of the role', 'A B@db C@db D', 'ADB|C', 'ABD'],
  ['the oldest of the role alone', 'A B@db C@db D@db', 'AB|CD', 'CD'],
  ['not the oldest of all', 'A B@db C@db D@db', 'BC|AD', 'BC'],
  ['a broken pair of the role', 'A B@db C@db D', 'ABCD', 'AD', 'B-C'],
  ['nobody has the role: undecided', 'A B C', 'A|BC', 'ABC'],
]);

const referee = membersOf('A B C').find(({ uid }) => uid === 'C')?.address ?? '';

table('R90: keep referee C', new KeepReferee({ refereeAddress: referee }), [
  ['its side, though small', 'A B C D E', 'AC|BDE', 'AC'],
  ['alone', 'A B C D E', 'C|ABDE', 'C'],
  ['unknown: undecided', 'A B D E', 'AB|DE', 'ABDE'],
  ['not up yet: undecided', 'A B Cj', 'AC|B', 'ABC'],
  ['down: undecided', 'A B Cd', 'A|B', 'AB'],
  ['leaving: it may be gone', 'A B Cl', 'AC|B', ''],
  ['exiting: it may be gone', 'A B Ce', 'AC|B', ''],
  ['a joiner on its side lives', 'A Bj C', 'BC|A', 'BC'],
  ['a leaving one on its side lives', 'A Bl C', 'BC|A', 'BC'],
  ['a broken pair of others', 'A B C D', 'ABCD', 'CD', 'A-B'],
  ['a split and a broken pair of others', 'A B C D E', 'ABC|DE', 'C', 'A-B'],
  ['a split, and its own link is broken', 'A B C D E', 'ABC|DE', 'B', 'A-C'],
  ['cut off by a broken link', 'A B C', 'ABC', 'B', 'A-C'],
]);

table(
  'R90: keep referee C, below quorum all go',
  new KeepReferee({ refereeAddress: referee, downAllIfBelowQuorum: 2 }),
  [
    ['alone', 'A B C D E', 'C|ABDE', ''],
    ['exactly', 'A B C D E', 'CE|ABD', 'CE'],
    ['one of them leaves', 'A Bl C D', 'BC|AD', ''],
    ['one of them joins', 'A Bj C D', 'BC|AD', ''],
  ],
);

table('R91 P54: static quorum of 5', new StaticQuorum({ quorumSize: 5 }), [
  ['1|2', 'A B C', 'A|BC', ''],
  ['4|4', 'A B C D E F G H', 'ABCD|EFGH', ''],
  ['5|4', 'A B C D E F G H I', 'ABCDE|FGHI', 'ABCDE'],
  ['4|5', 'A B C D E F G H I', 'ABCD|EFGHI', 'EFGHI'],
  ['1|5', 'A B C D E F', 'A|BCDEF', 'BCDEF'],
  ['FB-078 starting alone', 'A', 'A', 'A'],
  ['FB-078 scaled down to two', 'A B', 'AB', 'AB'],
]);

table('R91: static quorum of 3, for at most five', new StaticQuorum({ quorumSize: 3 }), [
  ['six, 3|3', 'A B C D E F', 'ABC|DEF', ''],
  ['six, 4|2', 'A B C D E F', 'ABCD|EF', 'ABCD'],
  ['five and a joiner, 3|3', 'A B C D E Fj', 'ABC|DEF', ''],
  ['one of three leaves', 'A B Cl D', 'ABC|D', ''],
  ['one of three joins', 'A B Cj D', 'ABC|D', ''],
  ['one of three exits', 'A B Ce D E', 'ABC|DE', ''],
  ['one of four leaves', 'A B Cl D E', 'ABCD|E', 'ABCD'],
  ['a down one does not help', 'A B C Dd E', 'AB|CE', ''],
  ['a down one does not harm', 'A B C D Ed', 'ABC|D', 'ABC'],
  ['a broken pair', 'A B C D E', 'ABCDE', 'CDE', 'A-B'],
  ['a split and a broken pair', 'A B C D E', 'ABC|DE', 'C', 'A-B'],
]);

table('R87: static quorum of 2 of a role', new StaticQuorum({ quorumSize: 2, role: 'db' }), [
  ['2|1 and others', 'A@db B@db C@db D E', 'AB|CDE', 'AB'],
  ['others are no substitute', 'A@db B@db C@db D E', 'A|B|CDE', ''],
  ['one of the role leaves', 'A@db Bl@db C@db', 'AB|C', ''],
  ['one of the role joins', 'A@db Bj@db C@db', 'AB|C', ''],
  ['joiners without the role', 'A@db B@db C@db Dj Ej', 'AB|CDE', 'AB'],
]);

table('P61: down all', new DownAll(), [
  ['P54 1|2', 'A B C', 'A|BC', ''],
  ['1|1', 'A B', 'A|B', ''],
  ['only a joiner is lost', 'A B Cj', 'AB|C', ''],
  ['a leaving one is lost', 'A B Cl', 'AB|C', ''],
  ['the lost one is down already', 'A B Cd', 'AB', 'AB'],
  ['the lost one is proven dead', 'A B Ct', 'AB', 'AB'],
  ['nobody is lost', 'A B C', 'ABC', 'ABC'],
  ['a broken pair', 'A B C', 'ABC', '', 'A-B'],
]);

table('R96: manual', new ManualDowning(), [
  ['1|2', 'A B C', 'A|BC', 'ABC'],
  ['2|2, one joins, one leaves', 'A B Cj Dl', 'AB|CD', 'ABCD'],
  ['a broken pair', 'A B C', 'ABC', 'ABC', 'A-B'],
]);

describe('strategies', () => {
  test('the losing side names nobody but itself, the winning side nobody of its own', () => {
    const members = membersOf('A B C');
    const strategy = new KeepMajority();
    const lost = strategy.decide({ members, unreachable: new Set(['A', 'B']), selfUid: 'C' });
    const won = strategy.decide({ members, unreachable: new Set(['C']), selfUid: 'A' });
    assertEquals([[...lost], [...won]], [['C'], ['C']]);
  });

  test('a node that is down, removed or unknown decides nothing', () => {
    const strategy = new KeepMajority();
    const members = membersOf('A B Cd');
    for (const selfUid of ['C', 'X']) {
      assertEquals(strategy.decide({ members, unreachable: new Set(['A']), selfUid }).size, 0);
    }
  });

  test('R88: members that are down already are not downed again', () => {
    const members = membersOf('A B C D Ed');
    const decision = new KeepMajority().decide({ members, unreachable: new Set(['D', 'E']), selfUid: 'A' });
    assertEquals([...decision], ['D']);
  });

  test('a referee that has restarted: its new incarnation counts, the old one is down', () => {
    const members = membersOf('A B Cd E').map((one) => one.uid === 'E' ? { ...one, address: referee } : one);
    assertEquals(survivors(new KeepReferee({ refereeAddress: referee }), members, 'AE|B'), 'AE');
  });

  test('R91 FB-078: too small a quorum is warned about as soon as the cluster has that size', () => {
    const strategy = new StaticQuorum({ quorumSize: 3 });
    assertEquals(strategy.warning(membersOf('A B C D E')), undefined);
    assertStringIncludes(strategy.warning(membersOf('A B C D E Fj')) ?? '', 'quorumSize 3');
  });

  test('R90: a referee that is not there is warned about', () => {
    const strategy = new KeepReferee({ refereeAddress: referee });
    assertStringIncludes(strategy.warning(membersOf('A B')) ?? '', referee);
    assertEquals(strategy.warning(membersOf('A B C')), undefined);
    assertEquals(strategy.warning(membersOf('A')), undefined);
  });

  test('a role that nobody has is warned about', () => {
    const strategy = new KeepMajority({ role: 'db' });
    assertStringIncludes(strategy.warning(membersOf('A B')) ?? '', `'db'`);
    assertEquals(strategy.warning(membersOf('A B@db')), undefined);
  });
});
