/** One member's part in spawning, message by message, on a membership that the test moves by hand. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import type { MembershipNode } from '../../src/cluster/contract.ts';
import type { ClusterEntry, Member, MembershipView } from '../../src/cluster/member.ts';
import { WireError } from '../../src/cluster/wire_checks.ts';
import type { SpawnError, SpawnErrorCode } from '../../src/singleton/spawn_errors.ts';
import { readSpawnMessage, spawnEnvelope, type SpawnMessage } from '../../src/singleton/spawn_messages.ts';
import { kindMark, registrationValue, spawnKey } from '../../src/singleton/spawn_registration.ts';
import { retrying, retryOptions } from '../../src/singleton/spawn_retries.ts';
import { spawnError } from '../../src/singleton/spawn_errors.ts';
import { Spawner } from '../../src/singleton/spawner.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { Envelope } from '../../src/transport/peers_contract.ts';
import { codes } from '../../src/wire/codes.ts';
import { member, viewOf } from './manager_world.ts';

const wanted = { name: 'jobs', kind: 'k', role: undefined, props: { a: 1 }, settings: {} };
const withKind = new Map([[kindMark('k'), { generation: 1, role: undefined }]]);
const able = (uid: string, upNumber: number, change: Partial<Member> = {}) =>
  member(uid, { upNumber, started: withKind, ...change });

/** The membership of node `self`, among a, b and c; `a` leads. */
class FakeNode {
  readonly environment = new ManualEnvironment({ seed: 1 });
  readonly sent: { to: string; message: SpawnMessage }[] = [];
  readonly uid: string;
  members: Member[] = [able('a', 1), able('b', 2), able('c', 3)];
  entries = new Map<string, ClusterEntry>();
  converged = true;
  free = true;
  #handler: ((peer: never, envelope: Envelope) => void) | undefined;
  #listener: ((view: MembershipView, changes: never) => void) | undefined;
  readonly spawner: Spawner;

  constructor(self: string) {
    this.uid = self;
    const node: Partial<MembershipNode> = {
      environment: this.environment,
      uid: self,
      address: `${self}:1`,
      view: () => ({ ...viewOf(this.members, self, this.entries), converged: this.converged }),
      onMessage: (code, handler) => {
        assertEquals(code, codes.spawn);
        this.#handler = handler as never;
        return () => {};
      },
      onChange: (listener) => {
        this.#listener = listener as never;
        return () => {};
      },
      sendSystem: (_address, envelope, uid) => void this.sent.push({ to: uid!, message: readSpawnMessage(envelope)! }),
      writeEntry: (key, value) => {
        const version = (this.entries.get(key)?.version ?? 0) + 1;
        this.entries = new Map(this.entries).set(key, { key, version, by: self, value });
        this.changed();
      },
    };
    this.spawner = new Spawner(node as MembershipNode, () => this.free);
  }

  changed(changes: unknown[] = [{ kind: 'leader' }]): void {
    this.#listener?.(viewOf(this.members, this.uid, this.entries), changes as never);
  }

  receive(from: string, message: SpawnMessage): void {
    this.raw(from, spawnEnvelope(message));
  }

  raw(from: string, envelope: Envelope): void {
    this.#handler?.({ uid: from, address: `${from}:1` } as never, envelope);
  }

  /** What has been sent since the last look. */
  take(): string[] {
    return this.sent.splice(0).map(({ to, message }) => `${to} ${message.step}`);
  }

  last(step: SpawnMessage['step'], to: string): SpawnMessage {
    return this.sent.findLast((one) => one.to === to && one.message.step === step)!.message;
  }

  spawn(registration = wanted): () => SpawnError | 'done' | undefined {
    let end: SpawnError | 'done' | undefined;
    this.spawner.attempt(registration, (error) => {
      assertEquals(end, undefined, 'it is called once');
      end = error ?? 'done';
    });
    return () => end;
  }
}

const codeOf = (end: SpawnError | 'done' | undefined) => typeof end === 'object' ? end.code : end;

describe('the caller', () => {
  test('G5: asks the leader for exactly what was wanted', () => {
    const node = new FakeNode('b');
    const props = { a: [1, 'x'] };
    const end = node.spawn({ ...wanted, props } as never);
    assertEquals(node.sent.map(({ to }) => to), ['a']);
    const request = node.last('request', 'a');
    assertEquals(request, { step: 'request', number: 1, wanted: { ...wanted, props } });
    assertEquals(end(), undefined);
    node.receive('a', { step: 'reply', number: 1, error: undefined });
    assertEquals(end(), 'done');
  });

  test('an answer that is not the leader’s counts for nothing', () => {
    const node = new FakeNode('b');
    const end = node.spawn();
    node.receive('c', { step: 'reply', number: 1, error: undefined });
    node.receive('a', { step: 'reply', number: 7, error: undefined });
    assertEquals(end(), undefined);
  });

  test('G16: an old leader that does not know the request: no answer, which may be retried', async () => {
    const node = new FakeNode('b');
    const end = node.spawn();
    await node.environment.elapse(6_999);
    assertEquals(end(), undefined);
    await node.environment.elapse(2);
    assertEquals([codeOf(end()), (end() as SpawnError).retryable], ['leader-unavailable', true]);
    assertStringIncludes((end() as SpawnError).message, 'a:1 did not answer within 7000 ms');
    // Later it is upgraded; its late answer harms nobody.
    node.receive('a', { step: 'reply', number: 1, error: undefined });
  });

  test('the leader goes: at once, not after the wait', () => {
    const node = new FakeNode('b');
    const end = node.spawn();
    node.members = [able('a', 1, { status: 'down' }), able('b', 2), able('c', 3)];
    node.changed();
    assertEquals(codeOf(end()), undefined, 'viewOf still says that a leads');
    node.members = [able('b', 2), able('c', 3)];
    node.changed();
    assertEquals(codeOf(end()), 'leader-unavailable');
  });

  test('G3, G4: no leader, or no cluster any more', () => {
    const node = new FakeNode('b');
    node.members = [];
    assertEquals(codeOf(node.spawn()()), 'leader-unavailable');
    node.members = [able('a', 1), able('b', 2)];
    const end = node.spawn();
    node.changed([{ kind: 'self-removed' }]);
    assertEquals(codeOf(end()), 'leader-unavailable');
    assertEquals(codeOf(node.spawn()()), 'leader-unavailable');
  });

  test('G17: which errors may be retried, here and after a journey', () => {
    const all: readonly (readonly [SpawnErrorCode, boolean])[] = [
      ['cluster-disabled', false],
      ['singleton-already-exists', false],
      ['actor-already-exists', false],
      ['no-eligible-member', true],
      ['kind-not-registered', false],
      ['registry-full', false],
      ['no-quorum', true],
      ['leader-unavailable', true],
      ['timeout', false],
      ['aborted', false],
    ];
    for (const [code, retryable] of all) {
      const node = new FakeNode('b');
      const end = node.spawn();
      const error = spawnError(code, 'why');
      node.receive('a', { step: 'reply', number: 1, error });
      const got = end() as SpawnError;
      assertEquals([got.code, got.retryable, got.name, got.message], [code, retryable, error.name, 'why']);
    }
  });
});

describe('the leader', () => {
  test('G8: hosts itself: registers, and is done with the first acknowledgement of another', () => {
    const node = new FakeNode('a');
    const end = node.spawn();
    assertEquals(node.take(), ['b confirm', 'c confirm']);
    assertEquals(end(), undefined);
    node.receive('b', { step: 'confirmed', number: 1 });
    assertEquals(end(), 'done');
    assertEquals(node.entries.get(spawnKey('jobs'))?.value, registrationValue(wanted));
  });

  test('G7: the oldest with the role is asked whether the name is free, and only then it registers', () => {
    const node = new FakeNode('a');
    node.members = [able('a', 1), able('b', 2, { roles: ['r'] }), able('c', 3, { roles: ['r'] })];
    const end = node.spawn({ ...wanted, role: 'r' } as never);
    assertEquals(node.sent.map(({ to, message }) => `${to} ${message.step}`), ['b check']);
    node.receive('c', { step: 'checked', number: 1, free: true });
    assertEquals(node.entries.size, 0, 'c has not been asked');
    node.receive('b', { step: 'checked', number: 1, free: true });
    assertEquals(node.entries.size, 1);
    node.receive('c', { step: 'confirmed', number: 1 });
    assertEquals(end(), 'done');
  });

  test('G11: a host that has an actor of that name', () => {
    const node = new FakeNode('a');
    node.members = [member('a', { upNumber: 1 }), able('b', 2)];
    const end = node.spawn();
    node.receive('b', { step: 'checked', number: 1, free: false });
    assertEquals([codeOf(end()), node.entries.size], ['actor-already-exists', 0]);
    assertStringIncludes((end() as SpawnError).message, 'b:1');
  });

  test('a host that dies between accepting and registering: the next one is asked too', () => {
    const node = new FakeNode('a');
    node.members = [member('a', { upNumber: 1 }), able('b', 2), able('c', 3)];
    const end = node.spawn();
    const first = node.last('check', 'b');
    node.members = [member('a', { upNumber: 1 }), able('c', 3)];
    node.receive('b', { step: 'checked', number: first.number, free: true });
    assertEquals(node.entries.size, 0, 'c has not been asked');
    const second = node.last('check', 'c');
    node.receive('c', { step: 'checked', number: second.number, free: true });
    assertEquals(node.entries.size, 1);
    node.receive('c', { step: 'confirmed', number: 1 });
    assertEquals(end(), 'done');
  });

  test('a host that dies before it answers: an error that may be retried, and nothing is registered', async () => {
    const node = new FakeNode('a');
    node.members = [member('a', { upNumber: 1 }), able('b', 2)];
    const end = node.spawn();
    await node.environment.elapse(3_001);
    assertEquals([codeOf(end()), node.entries.size], ['leader-unavailable', 0]);
    node.receive('b', { step: 'checked', number: 1, free: true });
    assertEquals(node.entries.size, 0, 'its late answer registers nothing');
  });

  test('two names for one kind while a host is asked: the first to be registered wins', () => {
    const node = new FakeNode('a');
    node.members = [member('a', { upNumber: 1 }), able('b', 2)];
    const [one, other] = [node.spawn({ ...wanted, name: 'one' }), node.spawn({ ...wanted, name: 'other' })];
    node.receive('b', { step: 'checked', number: 2, free: true });
    node.receive('b', { step: 'checked', number: 1, free: true });
    assertEquals([codeOf(one()), [...node.entries.keys()]], ['singleton-already-exists', [spawnKey('other')]]);
    assertStringIncludes((one() as SpawnError).message, "'other'");
    node.receive('b', { step: 'confirmed', number: 1 });
    assertEquals(other(), 'done');
  });

  test('rule 19: it registers nothing before it has seen everybody agree under its lead, then goes on', () => {
    const node = new FakeNode('a');
    node.converged = false;
    const end = node.spawn();
    assertEquals([codeOf(end()), node.entries.size], ['leader-unavailable', 0]);
    // Nobody is told of convergence alone.
    node.converged = true;
    node.spawn();
    assertEquals(node.entries.size, 1);
    node.converged = false;
    node.spawn({ ...wanted, name: 'more', kind: 'k' });
    assertEquals(codeOf(node.spawn({ ...wanted, name: 'more' })()), 'singleton-already-exists');
  });

  test('rule 19: acknowledgements of members that are not up any more do not count', async () => {
    const node = new FakeNode('a');
    node.members = [able('a', 1), able('b', 2), able('c', 3), able('d', 4), able('e', 5)];
    const end = node.spawn();
    node.receive('b', { step: 'confirmed', number: 1 });
    node.members = node.members.map((one) => one.uid === 'b' ? { ...one, status: 'down' } : one);
    node.changed();
    node.receive('c', { step: 'confirmed', number: 1 });
    assertEquals(end(), undefined, 'two of four');
    // A smaller cluster needs fewer.
    node.members = [able('a', 1), able('c', 3), able('d', 4)];
    node.changed();
    assertEquals(end(), 'done');
    await node.environment.elapse(10_000);
  });

  test('G9, G10, G12: no majority: an error that may be retried; the next attempt finds it and asks again', async () => {
    const node = new FakeNode('a');
    const first = node.spawn();
    await node.environment.elapse(3_001);
    assertEquals(codeOf(first()), 'no-quorum');
    node.take();
    const second = node.spawn();
    assertEquals(node.take(), ['b confirm', 'c confirm']);
    node.receive('c', { step: 'confirmed', number: 2 });
    assertEquals(second(), 'done');
    assertEquals(node.entries.get(spawnKey('jobs'))?.version, 1, 'G10: it was not registered again');
  });

  test('a name whose registration was removed a moment ago: those that still run it are asked whether it is theirs', () => {
    const node = new FakeNode('a');
    const started = new Map([...withKind, ['jobs', { generation: 2, role: undefined }]]);
    node.members = [able('a', 1), member('b', { upNumber: 2, started })];
    assertEquals(codeOf(node.spawn()()), 'actor-already-exists', 'never registered: it is their own');
    const key = spawnKey('jobs');
    node.entries = new Map([[key, { key, version: 2, by: 'b', value: null }]]);
    const end = node.spawn();
    assertEquals(node.last('check', 'b'), { step: 'check', number: 1, name: 'jobs', asHost: false });
    node.receive('b', { step: 'checked', number: 1, free: true });
    assertEquals(node.entries.get(key)?.version, 3);
    node.receive('b', { step: 'confirmed', number: 1 });
    assertEquals(end(), 'done');
  });

  test('who does not lead says so, in the same words to itself and to others', () => {
    const node = new FakeNode('b');
    node.receive('c', { step: 'request', number: 9, wanted });
    const reply = node.last('reply', 'c');
    assertEquals([reply.number, reply.step === 'reply' && reply.error?.code], [9, 'leader-unavailable']);
  });
});

describe('a member', () => {
  test('acknowledges an entry when it has it, to members only', () => {
    const node = new FakeNode('b');
    const key = spawnKey('jobs');
    node.receive('a', { step: 'confirm', number: 4, key, version: 1 });
    node.receive('gone', { step: 'confirm', number: 5, key, version: 1 });
    assertEquals(node.take(), []);
    node.changed();
    node.entries = new Map([[key, { key, version: 1, by: 'a', value: registrationValue(wanted) }]]);
    node.changed();
    assertEquals(node.sent.splice(0), [{ to: 'a', message: { step: 'confirmed', number: 4 } }]);
    node.changed();
    assertEquals(node.take(), []);
  });

  test('an old leader asks without saying for whom: as for the host', () => {
    const node = new FakeNode('b');
    node.raw('a', [codes.spawn, 2, 1, 'jobs']);
    assertEquals(node.sent[0]?.message, { step: 'checked', number: 1, free: true });
  });

  test('malformed messages are refused, steps of a later version ignored', () => {
    const node = new FakeNode('a');
    const malformed: Envelope[] = [
      [codes.spawn],
      [codes.spawn, 0, -1, 'jobs', ['k', null, null, {}]],
      [codes.spawn, 0, 1, 'a/b', ['k', null, null, {}]],
      [codes.spawn, 0, 1, 'x'.repeat(256), ['k', null, null, {}]],
      [codes.spawn, 0, 1, 'jobs', ['k', 7, null, {}]],
      [codes.spawn, 0, 1, 'jobs', ['k', null, null, { bufferSize: -1 }]],
      [codes.spawn, 0, 1, 'jobs', ['k', null, null, { supervisor: { maxRestarts: 'many' } }]],
      [codes.spawn, 0, 1, 'jobs', ['k', null]],
      [codes.spawn, 2, 1, 7],
      [codes.spawn, 3, 1, 'yes'],
      [codes.spawn, 4, 1, 'k'.repeat(600), 1],
      [codes.spawn, 4, 1, 'k', 0.5],
    ];
    for (const envelope of malformed) {
      const error = assertThrows(() => node.raw('b', envelope), Error);
      assert(error instanceof WireError || error instanceof OptionsError, String(error));
    }
    assertEquals(node.entries.size, 0);
    node.raw('b', [codes.spawn, 17, 1, 'whatever']);
    node.raw('b', [codes.spawn, 0, 1, 'jobs', ['k', null, null, { later: true }]]);
    assertEquals(node.entries.size, 1);
  });
});

describe('retries', () => {
  const run = (outcomes: (SpawnErrorCode | 'done')[], options = {}, signal?: AbortSignal) => {
    const environment = new ManualEnvironment({ seed: 3 });
    const times: number[] = [];
    let end: SpawnError | 'done' | undefined;
    retrying({
      what: 'the test',
      environment,
      attempt: (done) => {
        const outcome = outcomes[times.length];
        times.push(environment.clock.now());
        if (outcome) done(outcome === 'done' ? undefined : spawnError(outcome, outcome));
      },
    }, retryOptions({ ...options, signal: signal as never })).then(() => end = 'done', (error) => end = error);
    return { environment, times, end: () => codeOf(end) };
  };

  test('G16: until one succeeds; the wait doubles, with up to a fifth more', async () => {
    const { environment, times, end } = run(['no-quorum', 'leader-unavailable', 'no-eligible-member', 'done']);
    for (let gone = 0; gone < 5_000; gone += 10) await environment.elapse(10);
    assertEquals(end(), 'done');
    const waits = times.slice(1).map((at, n) => at - times[n]!);
    assertEquals(waits.length, 3);
    for (const [n, base] of [500, 1_000, 2_000].entries()) {
      assert(waits[n]! >= base && waits[n]! <= base * 1.2 + 10, `${waits[n]} ms after attempt ${n + 1}`);
    }
  });

  test('G6, G9: the attempts are spent: the last error', async () => {
    const { environment, times, end } = run(['no-quorum', 'no-eligible-member', 'done'], {
      retries: 2,
      waitIntervalMs: 1,
    });
    await environment.elapse(100);
    assertEquals([times.length, end()], [2, 'no-eligible-member']);
  });

  test('G11: an error that is not worth a retry ends it', async () => {
    const { environment, times, end } = run(['singleton-already-exists', 'done']);
    await environment.elapse(60_000);
    assertEquals([times.length, end()], [1, 'singleton-already-exists']);
  });

  test('the time is over: the last error, or that there was none', async () => {
    const silent = run([], { spawnTimeoutMs: 1_000 });
    await silent.environment.elapse(1_001);
    assertEquals(silent.end(), 'timeout');
    const late = run(['no-quorum'], { spawnTimeoutMs: 900, waitIntervalMs: 600 });
    for (let gone = 0; gone < 1_000; gone += 10) await late.environment.elapse(10);
    assertEquals([late.end(), late.times.length], ['no-quorum', 2]);
    const pointless = run(['no-quorum'], { spawnTimeoutMs: 400, waitIntervalMs: 600 });
    await pointless.environment.elapse(1);
    assertEquals(pointless.end(), 'no-quorum', 'no wait that could not be followed by an attempt');
  });

  test('G14: a signal ends it at once, before any call or between two', async () => {
    const before = new AbortController();
    before.abort();
    const never = run(['done'], {}, before.signal);
    await never.environment.elapse(1);
    assertEquals([never.end(), never.times.length], ['aborted', 0]);
    const between = new AbortController();
    const once = run(['no-quorum', 'done'], {}, between.signal);
    await once.environment.elapse(1);
    between.abort();
    await once.environment.elapse(10_000);
    assertEquals([once.end(), once.times.length], ['aborted', 1]);
  });

  test('defaults', () => {
    assertEquals(retryOptions({}), { spawnTimeoutMs: 30_000, waitIntervalMs: 500, retries: 5, signal: undefined });
  });
});
