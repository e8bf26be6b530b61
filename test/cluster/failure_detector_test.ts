import { describe, test } from 'node:test';
import { assert, assertEquals, assertStrictEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import {
  checkDetectorOptions,
  type DetectorEvent,
  type DetectorOptions,
  newDetector,
  stepDetector,
} from '../../src/cluster/failure_detector.ts';

const options: DetectorOptions = { heartbeatMs: 500, unreachableAfterMs: 2_000 };

/** A detector on a virtual clock. `run` ticks when ticks are due, with peers that beat each 500 ms. */
class Bench {
  now = 0;
  state = newDetector('me');
  readonly log: string[] = [];
  readonly beating = new Set<string>();
  #sequence = 0;

  constructor(...uids: string[]) {
    this.send({ kind: 'watch', uids });
    for (const uid of uids) this.beating.add(uid);
    this.send({ kind: 'tick' });
  }

  send(event: DetectorEvent): this {
    const step = stepDetector(this.state, event, this.now, options);
    this.state = step.state;
    for (const effect of step.effects) {
      this.log.push(`${this.now} ${effect.kind} ${effect.kind === 'paused' ? effect.pauseMs : effect.uid}`);
    }
    return this;
  }

  beat(): this {
    for (const uid of this.beating) this.send({ kind: 'heartbeat', uid, sequence: ++this.#sequence });
    return this;
  }

  run(forMs: number): this {
    const end = this.now + forMs;
    while (this.now < end) {
      const nextBeat = (Math.floor(this.now / 500) + 1) * 500;
      const due = this.state.tickDueAt ?? Infinity;
      this.now = Math.min(nextBeat, Math.max(due, this.now), end);
      if (this.now === nextBeat) this.beat();
      if (this.now >= due) this.send({ kind: 'tick' });
    }
    return this;
  }
}

describe('R96: the deadline', () => {
  test('peers that beat stay reachable, without a word', () => {
    assertEquals(new Bench('a', 'b').run(60_000).log, []);
  });

  test('one that falls silent is unreachable after 2 s of silence, once', () => {
    const bench = new Bench('a', 'b').run(10_000);
    bench.beating.delete('a');
    assertEquals(bench.run(60_000).log, ['12000 unreachable a']);
  });

  test('one that never gave a sign is unreachable 2 s after the watch began', () => {
    const bench = new Bench('a');
    bench.beating.clear();
    assertEquals(bench.run(5_000).log, ['2000 unreachable a']);
  });

  test('R98: the next fresh sign makes it reachable again, on the transition only', () => {
    const bench = new Bench('a').run(1_000);
    bench.beating.delete('a');
    bench.run(3_200);
    bench.beating.add('a');
    assertEquals(bench.run(5_000).log, ['3000 unreachable a', '4500 reachable a']);
  });

  test('a peer just inside the deadline stays reachable', () => {
    const bench = new Bench('a').run(1_000);
    bench.beating.delete('a');
    bench.run(1_999).send({ kind: 'heartbeat', uid: 'a', sequence: 1_000 });
    assertEquals(bench.run(1_999).log, []);
    assertEquals(bench.run(1).log, ['4999 unreachable a']);
  });
});

describe('R117: signs of life', () => {
  test('old, repeated, wild and foreign sequence numbers are no signs', () => {
    const bench = new Bench('a').send({ kind: 'heartbeat', uid: 'a', sequence: 10 });
    const { state } = bench;
    for (const sequence of [10, 9, -1, 10.5, NaN, Infinity, 2 ** 53, 11 + 2 ** 32]) {
      bench.now += 1;
      assertStrictEquals(bench.send({ kind: 'heartbeat', uid: 'a', sequence }).state, state);
    }
    assertStrictEquals(bench.send({ kind: 'heartbeat', uid: 'stranger', sequence: 1 }).state, state);
    assert(bench.send({ kind: 'heartbeat', uid: 'a', sequence: 11 }).state !== state);
  });

  test('a new incarnation starts its own numbers', () => {
    const bench = new Bench('a1').send({ kind: 'heartbeat', uid: 'a1', sequence: 5_000 });
    bench.send({ kind: 'watch', uids: ['a2'] }).send({ kind: 'heartbeat', uid: 'a2', sequence: 0 });
    assertEquals(bench.state.peers.get('a2')?.sequence, 0);
    assertEquals(bench.state.peers.has('a1'), false);
  });
});

describe('the watched set', () => {
  test('who stays keeps its silence, who is new has the whole time, self is never watched', () => {
    const bench = new Bench('a');
    bench.beating.clear();
    bench.run(1_500).send({ kind: 'watch', uids: ['a', 'b', 'me'] });
    assertEquals([...bench.state.peers.keys()], ['a', 'b']);
    assertEquals(bench.run(5_000).log, ['2000 unreachable a', '3500 unreachable b']);
  });

  test('an unreachable one that is not watched any more is dropped from the verdicts', () => {
    const bench = new Bench('a', 'b');
    bench.beating.delete('a');
    bench.run(2_000).send({ kind: 'watch', uids: ['b'] });
    assertEquals(bench.log, ['2000 unreachable a', '2000 dropped a']);
  });
});

describe("this node's own pause", () => {
  test('FB-130: after a jump of 10 minutes nobody is blamed, and one round later all are heard', () => {
    const bench = new Bench('a', 'b', 'c').run(5_000);
    bench.now += 600_000;
    bench.send({ kind: 'tick' });
    assertEquals(bench.log, ['605000 paused 599500']);
    assertEquals(bench.run(10_000).log.length, 1);
  });

  test('FB-130: a peer that died meanwhile is found soon after', () => {
    const bench = new Bench('a', 'b').run(5_000);
    bench.beating.delete('a');
    bench.now += 600_000;
    bench.send({ kind: 'tick' }).run(3_000);
    assertEquals(bench.log.slice(1), ['606500 unreachable a']);
  });

  test('a peer that had one moment left gets a round of heartbeats', () => {
    const bench = new Bench('a').run(1_000);
    bench.beating.delete('a');
    bench.run(1_990);
    bench.now += 5_000;
    bench.send({ kind: 'tick' });
    bench.run(990).send({ kind: 'heartbeat', uid: 'a', sequence: 9_999 });
    assert(!bench.log.some((line) => line.includes('unreachable')), bench.log.join());
  });

  test('FB-070: signs that waited in the sockets count from when they are read', () => {
    const bench = new Bench('a').run(1_000);
    bench.now += 8_000;
    bench.beat().send({ kind: 'tick' });
    assertEquals(bench.state.peers.get('a')?.lastSignAt, 9_000, 'never in the future');
  });

  test('a tick that is a little late is no pause', () => {
    const bench = new Bench('a');
    bench.now += 500 + 250;
    bench.send({ kind: 'tick' });
    assertEquals(bench.log, []);
    bench.now += 500 + 251;
    bench.send({ kind: 'tick' });
    assertEquals(bench.log, ['1501 paused 251']);
  });
});

describe('lost links', () => {
  const lose = (bench: Bench, ...by: string[]): Bench => {
    for (const observer of by) bench.send({ kind: 'link-lost', uid: 'a', by: observer });
    return bench;
  };
  const silent = (): Bench => {
    const bench = new Bench('a', 'b').run(10_000);
    bench.beating.delete('a');
    bench.now += 100;
    return bench;
  };

  test('a loss that another observer confirms shortens the deadline to one heartbeat', () => {
    assertEquals(lose(silent(), 'me', 'b').run(5_000).log, ['10500 unreachable a']);
  });

  test('the confirmation may come first or late', () => {
    assertEquals(lose(silent(), 'b', 'me').run(5_000).log, ['10500 unreachable a']);
    assertEquals(lose(lose(silent(), 'me').run(800), 'b').run(5_000).log, ['10900 unreachable a']);
  });

  test("one's own loss alone, others' alone, or the suspect's own word shorten nothing", () => {
    for (const by of [['me'], ['b'], ['b', 'c'], ['me', 'a']]) {
      assertEquals(lose(silent(), ...by).run(5_000).log, ['12000 unreachable a'], by.join());
    }
  });

  test('a sign of life or an open link ends the suspicion', () => {
    const heard = lose(silent(), 'me', 'b').send({ kind: 'heartbeat', uid: 'a', sequence: 9_999 });
    assertEquals(heard.run(5_000).log, ['12100 unreachable a']);
    const open = lose(silent(), 'me', 'b').send({ kind: 'link-open', uid: 'a', by: 'me' });
    assertEquals(open.run(5_000).log, ['12000 unreachable a']);
  });

  test('after an own pause even a suspect gets its round', () => {
    const bench = silent();
    bench.now += 30_000;
    lose(bench, 'me', 'b').send({ kind: 'tick' });
    assertEquals(bench.log.filter((line) => line.includes('unreachable')), []);
    bench.run(600);
    assertEquals(bench.log.at(-1), '40600 unreachable a');
  });
});

test('bad detector options are refused', () => {
  checkDetectorOptions(options);
  const bad: [field: string, options: DetectorOptions][] = [
    ['heartbeatMs', { ...options, heartbeatMs: NaN }],
    ['heartbeatMs', { ...options, heartbeatMs: 0 }],
    ['unreachableAfterMs', { ...options, unreachableAfterMs: 999 }],
    ['suspectAfterMs', { ...options, suspectAfterMs: 2_001 }],
    ['suspectAfterMs', { ...options, suspectAfterMs: 0 }],
    ['confirmations', { ...options, confirmations: 0 }],
  ];
  for (const [field, some] of bad) {
    assertEquals(assertThrows(() => checkDetectorOptions(some), OptionsError).field, field);
  }
});
