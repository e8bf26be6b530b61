import { describe, test } from 'node:test';
import { assertEquals, assertStringIncludes } from '@std/assert';
import { Actor, ActorFailed, type Directive, SupervisorStrategy } from '../../src/mod.ts';
import { acting, deferred, fixture, recording, spawnManaged } from './system_fixture.ts';

const deciding = (directive: Directive) => SupervisorStrategy.oneForOne({ decider: () => directive });

/** A parent that spawns what it is told, under the strategy given. */
function parentOf(supervisor: SupervisorStrategy, events: string[] = []): () => Actor<[string, () => Actor<unknown>]> {
  return () =>
    new (class extends Actor<[string, () => Actor<unknown>]> {
      override preStart(): void {
        events.push('parent preStart');
      }
      override supervisor(): SupervisorStrategy {
        return supervisor;
      }
      override onReceive([name, source]: [string, () => Actor<unknown>]): void {
        this.context.spawn(source, name);
      }
      override postStop(): void {
        events.push('parent postStop');
      }
    })();
}

describe('failures', () => {
  test('resume keeps the instance and loses the message only', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(recording(events), 'a', { supervisor: deciding('resume') });
    ref.tell(new Error('x'));
    ref.tell('next');
    env.runTurns();
    assertEquals(events, ['constructed', 'preStart', 'next']);
  });

  test('stop ends the actor with cause failure and the error, after postStop', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const error = new Error('x');
    const ref = spawnManaged(system, 'a', recording(events), {
      supervisor: deciding('stop'),
      hooks: { terminated: (cause, why) => events.push(`terminated ${cause} ${why === error}`) },
    });
    ref.tell(error);
    env.runTurns();
    assertEquals(events.slice(-2), ['postStop', 'terminated failure true']);
  });

  test('an async handler that rejects is a failure like any other', async () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const ref = system.spawn(
      acting<string>(async (message) => {
        await Promise.resolve();
        if (message === 'fail') throw new Error('x');
        seen.push(message);
      }),
      'a',
    );
    for (const message of ['1', 'fail', '2']) ref.tell(message);
    await env.settle();
    assertEquals(seen, ['1', '2']);
    assertEquals(env.logsAt('error').length, 1);
  });

  test('the budget runs out after 10 restarts within 60 s by default', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(recording(events), 'a');
    for (let i = 0; i < 11; i += 1) ref.tell(new Error(`x${i}`));
    env.runTurns();
    assertEquals(events.filter((event) => event === 'constructed').length, 11);
    assertEquals(system.resolve('/user/a'), undefined);
  });

  test('FB-110: five siblings fail once each: none is stopped, five records with stack and message kind', () => {
    const { env, system } = fixture();
    const failures: ActorFailed[] = [];
    system.eventStream.subscribe(ActorFailed, (event) => failures.push(event));
    const supervisor = SupervisorStrategy.oneForOne({ maxRestarts: 1 });
    const parent = system.spawn(parentOf(supervisor), 'p');
    const child = () =>
      acting<unknown>(() => {
        throw new Error('x');
      })();
    for (let i = 0; i < 5; i += 1) parent.tell([`c${i}`, child]);
    env.runTurns();
    for (let i = 0; i < 5; i += 1) system.resolve(`/user/p/c${i}`)?.tell({ kind: 'work' });
    env.runTurns();
    for (let i = 0; i < 5; i += 1) assertEquals(system.resolve(`/user/p/c${i}`) === undefined, false);
    const records = env.logged.filter((entry) => entry.level === 'error');
    assertEquals(records.length, 5);
    for (const [i, { message, fields }] of records.entries()) {
      assertStringIncludes(message, `/user/p/c${i} failed on message 'work'`);
      assertEquals([fields?.['actor'], fields?.['messageKind'], fields?.['directive']], [
        `/user/p/c${i}`,
        'work',
        'restart',
      ]);
      assertStringIncludes(String(fields?.['stack']), 'Error: x');
    }
    assertEquals(failures.map((event) => [event.path, event.messageKind])[4], ['/user/p/c4', 'work']);
    // The budget of each is its own: the second failure of one stops that one only.
    system.resolve('/user/p/c2')?.tell({ kind: 'work' });
    env.runTurns();
    assertEquals([1, 2, 3].map((i) => system.resolve(`/user/p/c${i}`) === undefined), [false, true, false]);
  });

  test('spawn options go before the parent, the parent before the system', () => {
    const { env, system } = fixture({ defaultSupervisor: deciding('stop') });
    const events: string[] = [];
    const byDefault = system.spawn(recording(events), 'a');
    const byOption = system.spawn(recording(events), 'b', { supervisor: deciding('resume') });
    const parent = system.spawn(parentOf(deciding('resume')), 'p');
    parent.tell(['c', recording(events)]);
    env.runTurns();
    for (const path of ['/user/a', '/user/b', '/user/p/c']) system.resolve(path)?.tell(new Error('x'));
    env.runTurns();
    assertEquals(system.resolve(byDefault.path), undefined);
    assertEquals(system.resolve(byOption.path) === byOption, true);
    assertEquals(system.resolve('/user/p/c') === undefined, false);
  });

  test('supervisor() that throws leaves it to the system', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const parent = system.spawn(
      () =>
        new (class extends Actor<string> {
          override supervisor(): SupervisorStrategy {
            throw new Error('no idea');
          }
          override onReceive(): void {
            this.context.spawn(recording(events), 'c').tell(new Error('x'));
          }
        })(),
      'p',
    );
    parent.tell('go');
    env.runTurns();
    assertEquals(events.filter((event) => event === 'constructed').length, 2);
  });
});

describe('failed starts', () => {
  const places: readonly (readonly [string, 'constructor' | 'preStart', () => unknown])[] = [
    ['constructor throws', 'constructor', () => {
      throw new Error('start');
    }],
    ['preStart throws', 'preStart', () => {
      throw new Error('start');
    }],
    ['preStart rejects', 'preStart', () => Promise.reject(new Error('start'))],
  ];
  for (const [label, place, fail] of places) {
    for (const directive of ['restart', 'resume', 'stop', 'escalate'] as const) {
      test(`FB-104: ${label}, rule '${directive}': it ends, watchers are told, the name is free`, async () => {
        const { env, system } = fixture();
        const events: string[] = [];
        const notices: string[] = [];
        system.spawn(
          () =>
            new (class extends Actor<string> {
              override preStart(): void {
                this.context.watch(ref);
              }
              override onReceive(): void {}
              override onTerminated(): void {
                notices.push('terminated');
              }
            })(),
          'watcher',
        );
        const ref = system.spawn(recording(events, { [place]: fail }), 'a', { supervisor: deciding(directive) });
        ref.tell('never handled');
        await env.settle();
        const starts = directive === 'restart' || directive === 'resume' ? 11 : 1;
        assertEquals(events.filter((event) => event === 'constructed').length, starts);
        assertEquals(notices, ['terminated']);
        assertEquals(system.resolve('/user/a'), undefined);
        assertEquals(system.deadLetters.countOf('stopped'), 1);
        system.spawn(acting(() => {}), 'a');
      });
    }

    test(`FB-104: ${label} once, then works`, async () => {
      const { env, system } = fixture();
      const events: string[] = [];
      let tries = 0;
      const source = recording(events, { [place]: () => (tries += 1) === 1 ? fail() : undefined });
      const ref = system.spawn(source, 'a');
      ref.tell('handled');
      await env.settle();
      assertEquals(events.at(-1), 'handled');
      // Who was never constructed has not been there before: it starts, and does not restart.
      assertEquals(events.includes('postRestart start'), place === 'preStart');
    });
  }

  test('a factory that returns no actor, or the same one twice, is a failed start', () => {
    const { env, system } = fixture();
    const once = new (class extends Actor<unknown> {
      override onReceive(): void {
        throw new Error('x');
      }
    })();
    system.spawn(() => ({}) as Actor<unknown>, 'a', { supervisor: deciding('stop') });
    const shared = system.spawn(() => once, 'b', { supervisor: SupervisorStrategy.oneForOne({ maxRestarts: 1 }) });
    shared.tell('fail');
    env.runTurns();
    assertStringIncludes(env.logsAt('error')[0] ?? '', 'did not return an Actor');
    assertStringIncludes(env.logsAt('error').at(-1) ?? '', 'must return a new actor');
    assertEquals(system.resolve('/user/b'), undefined);
  });

  test('endless restarts without a wait leave turns to others', () => {
    const { env, system } = fixture();
    let tries = 0;
    const others: string[] = [];
    const failing = acting(() => {});
    system.spawn(
      () => {
        tries += 1;
        if (tries < 5_000) throw new Error('start');
        return failing();
      },
      'a',
      { supervisor: SupervisorStrategy.oneForOne({ maxRestarts: Infinity }) },
    );
    const other = system.spawn(acting<string>(() => others.push(`after ${tries < 5_000}`)), 'b');
    other.tell('x');
    env.runTurns();
    assertEquals([tries, others], [5_000, ['after true']]);
  });
});

describe('escalation', () => {
  test('the parent fails with the error of the child, and its own supervisor decides', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const parent = system.spawn(parentOf(deciding('escalate'), events), 'p');
    parent.tell(['c', recording(events)]);
    env.runTurns();
    const child = system.resolve('/user/p/c');
    child?.tell(new Error('x'));
    child?.tell('lost with the child');
    env.runTurns();
    assertEquals(events, [
      'parent preStart',
      'constructed',
      'preStart',
      'postStop',
      'parent postStop',
      'parent preStart',
    ]);
    assertEquals(system.resolve('/user/p') === parent, true);
    assertEquals(system.resolve('/user/p/c'), undefined);
    assertEquals(system.deadLetters.countOf('stopped'), 1);
  });

  test('a parent that resumes lets the child go on', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const parent = system.spawn(parentOf(deciding('escalate'), events), 'p', { supervisor: deciding('resume') });
    parent.tell(['c', recording(events)]);
    env.runTurns();
    const child = system.resolve('/user/p/c');
    child?.tell(new Error('x'));
    child?.tell('next');
    env.runTurns();
    assertEquals(events, ['parent preStart', 'constructed', 'preStart', 'next']);
  });

  test('a parent that resumes over a child that could not start stops that child', () => {
    const { env, system } = fixture();
    const parent = system.spawn(parentOf(deciding('escalate')), 'p', { supervisor: deciding('resume') });
    const broken = recording([], {
      preStart: () => {
        throw new Error('start');
      },
    });
    parent.tell(['c', broken]);
    env.runTurns();
    assertEquals(system.resolve('/user/p/c'), undefined);
    assertEquals(system.resolve('/user/p') === parent, true);
  });

  test('waits until the parent has finished its present message', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const end = deferred();
    const parent = system.spawn(
      () =>
        new (class extends Actor<string> {
          override supervisor(): SupervisorStrategy {
            return deciding('escalate');
          }
          override async onReceive(): Promise<void> {
            this.context.spawn(recording(events), 'c').tell(new Error('x'));
            await end.promise;
            events.push('parent done');
          }
          override postStop(): void {
            events.push('parent postStop');
          }
        })(),
      'p',
    );
    parent.tell('go');
    await env.settle();
    assertEquals(events, ['constructed', 'preStart']);
    end.resolve();
    await env.settle();
    assertEquals(events, ['constructed', 'preStart', 'parent done', 'postStop', 'parent postStop']);
  });

  test('FB-109: at the top it stops that actor, once, and the system lives on', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const source = recording(events, {
      preStart: () => {
        throw new Error('start');
      },
    });
    system.spawn(source, 'a', { supervisor: deciding('escalate') });
    const other = system.spawn(recording([]), 'b');
    env.runTurns();
    assertEquals(events, ['constructed', 'preStart', 'postStop']);
    assertEquals(env.logsAt('error').length, 1);
    assertStringIncludes(env.logsAt('error')[0] ?? '', 'nobody above');
    assertEquals(system.resolve('/user/b') === other, true);
  });
});

describe('all-for-one', () => {
  const family = (directive: Directive) => {
    const { env, system } = fixture();
    const events: Record<string, string[]> = { a: [], b: [], c: [] };
    const supervisor = SupervisorStrategy.allForOne({ decider: () => directive });
    const parent = system.spawn(parentOf(supervisor), 'p');
    for (const [name, list] of Object.entries(events)) parent.tell([name, recording(list)]);
    env.runTurns();
    system.resolve('/user/p/b')?.tell(new Error('x'));
    env.runTurns();
    return { env, system, events };
  };

  test('restart: all siblings are restarted, each once', () => {
    const { events } = family('restart');
    for (const list of Object.values(events)) {
      assertEquals(list.filter((event) => event === 'constructed').length, 2);
      assertEquals(list.includes('postRestart x'), true);
    }
    assertEquals(events['b']?.includes('preRestart x thrown'), true);
    assertEquals(events['a']?.includes('preRestart x undefined'), true);
  });

  test('stop: all siblings are stopped', () => {
    const { system, events } = family('stop');
    for (const [name, list] of Object.entries(events)) {
      assertEquals(list.at(-1), 'postStop');
      assertEquals(system.resolve(`/user/p/${name}`), undefined);
    }
  });

  test('resume: nobody else is touched', () => {
    const { events } = family('resume');
    for (const list of Object.values(events)) assertEquals(list, ['constructed', 'preStart']);
  });
});
