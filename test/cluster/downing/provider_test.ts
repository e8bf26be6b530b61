import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertThrows } from '@std/assert';
import { OptionsError } from '../../../src/actor/options.ts';
import {
  type DowningOption,
  type DowningProvider,
  type DowningQuestion,
  downingStrategy,
  fromProvider,
  isDowningOption,
  KeepMajority,
  KeepOldest,
  KeepReferee,
  StaticQuorum,
} from '../../../src/cluster/downing/mod.ts';
import { membersOf } from './members.ts';

function recorder(): { readonly lines: string[]; error(message: string, fields?: unknown): void } {
  const lines: string[] = [];
  return { lines, error: (message, fields) => lines.push(`${message} ${JSON.stringify(fields ?? {})}`) };
}

const members = membersOf('A B C D Ed');
const address = (uid: string): string => members.find((one) => one.uid === uid)?.address ?? '';
const without = (...uids: string[]) => ({ members, unreachable: new Set(uids), selfUid: 'A' });

describe('R84: a user-made downing provider', () => {
  test('is asked in addresses, without the down ones and itself among the unreachable', () => {
    const asked: DowningQuestion[] = [];
    const provider: DowningProvider = {
      decide: (question) => {
        asked.push(question);
        return new Set([address('D')]);
      },
    };
    const decision = fromProvider(provider, recorder()).decide(without('A', 'D', 'E'));
    assertEquals([...decision], ['D']);
    assertEquals([...(asked[0]?.unreachable ?? [])], [address('D')]);
    assertEquals(asked[0]?.self.uid, 'A');
    assertEquals(asked[0]?.allMembers.length, 5);
  });

  test('is not asked while nobody is lost', () => {
    let count = 0;
    const provider: DowningProvider = { decide: () => (count++, new Set()) };
    assertEquals(fromProvider(provider, recorder()).decide(without('E')).size, 0);
    assertEquals(count, 0);
  });

  test('an answer with its own address downs the node that asks; unknown addresses mean nobody', () => {
    const provider: DowningProvider = { decide: ({ self }) => new Set([self.address, '10.9.9.9:1']) };
    assertEquals([...fromProvider(provider, recorder()).decide(without('D'))], ['A']);
  });

  test('R85: what it throws is logged, once for the same error, and counts as no decision', () => {
    const log = recorder();
    const provider: DowningProvider = {
      decide: () => {
        throw new Error('no table');
      },
    };
    const strategy = fromProvider(provider, log);
    assertEquals(strategy.decide(without('D')).size, 0);
    assertEquals(strategy.decide(without('D')).size, 0);
    assertFalse(strategy.keeps(members, new Set(['A', 'B'])));
    assertEquals(log.lines.length, 1);
    assert(log.lines[0]?.includes('no table'));
  });

  test('R85: an answer that is no set is logged and counts as no decision', () => {
    const log = recorder();
    const provider = { decide: () => [address('D')] } as unknown as DowningProvider;
    assertEquals(fromProvider(provider, log).decide(without('D')).size, 0);
    assertEquals(log.lines.length, 1);
  });

  test('keeps a side exactly if it would down others and nobody of that side', () => {
    const downLost: DowningProvider = { decide: ({ unreachable }) => unreachable };
    const downSelf: DowningProvider = { decide: ({ self }) => new Set([self.address]) };
    const undecided: DowningProvider = { decide: () => new Set() };
    const log = recorder();
    assert(fromProvider(downLost, log).keeps(members, new Set(['A'])));
    assertFalse(fromProvider(downSelf, log).keeps(members, new Set(['A', 'B', 'C'])));
    assertFalse(fromProvider(undecided, log).keeps(members, new Set(['A', 'B', 'C'])));
    const all = membersOf('A B');
    assert(fromProvider(undecided, log).keeps(all, new Set(['A', 'B'])), 'there is no other side');
  });
});

describe('downing options', () => {
  test('names, strategies and providers', () => {
    const log = recorder();
    assertEquals(downingStrategy(undefined, log).name, 'keep-majority');
    for (const name of ['keep-majority', 'keep-oldest', 'down-all', 'manual'] as const) {
      assertEquals(downingStrategy(name, log).name, name);
    }
    assertEquals(downingStrategy('manual', log).gated, false);
    const quorum = new StaticQuorum({ quorumSize: 2 });
    assertEquals(downingStrategy(quorum, log), quorum);
    assertEquals(downingStrategy({ decide: () => new Set<string>() }, log).name, 'provider');
  });

  test('what can be none is told apart', () => {
    const good: DowningOption[] = ['manual', new KeepMajority(), { decide: () => new Set<string>() }];
    for (const option of good) assert(isDowningOption(option));
    for (const option of ['keep-referee', '', null, 7, {}, { decide: 1 }]) assertFalse(isDowningOption(option));
  });

  test('bad parameters are refused with family, field and rule', () => {
    const bad: [make: () => unknown, family: string, field: string][] = [
      [() => new KeepMajority({ role: '' }), 'KeepMajority', 'role'],
      [() => new KeepOldest({ downIfAlone: 1 as unknown as boolean }), 'KeepOldest', 'downIfAlone'],
      [() => new KeepReferee({} as { refereeAddress: string }), 'KeepReferee', 'refereeAddress'],
      [() => new KeepReferee({ refereeAddress: 'nowhere' }), 'KeepReferee', 'refereeAddress'],
      [
        () => new KeepReferee({ refereeAddress: 'a:1', downAllIfBelowQuorum: 0 }),
        'KeepReferee',
        'downAllIfBelowQuorum',
      ],
      [() => new StaticQuorum({} as { quorumSize: number }), 'StaticQuorum', 'quorumSize'],
      [() => new StaticQuorum({ quorumSize: 0 }), 'StaticQuorum', 'quorumSize'],
      [() => new StaticQuorum({ quorumSize: 1.5 }), 'StaticQuorum', 'quorumSize'],
      [() => new StaticQuorum({ quorumSize: NaN }), 'StaticQuorum', 'quorumSize'],
    ];
    for (const [make, family, field] of bad) {
      const error = assertThrows(make, OptionsError);
      assertEquals([error.family, error.field], [family, field]);
    }
  });
});
