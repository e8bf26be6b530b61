/** Single rules of hand-over and warm state. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { HandOverResult, ManagerEffect, ManagerEvent, ManagerState } from '../../src/singleton/manager_state.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';
import { member, viewOf } from './manager_world.ts';
import { Scene } from './scene.ts';

const record = { generation: 1, role: undefined };
const started = new Map([['x', record]]);
const [a, b, c] = ['a', 'b', 'c'].map((uid, at) => member(uid, { upNumber: at + 1, started }));
const asker = (uid: string, nonce = `${uid}/1`) => ({ uid, address: `${uid}:1`, nonce });
const request = (uid: string, nonce?: string): ManagerEvent => ({
  kind: 'request',
  asker: asker(uid, nonce),
  epoch: 9,
});
const clear = { kind: 'not-hosting' } as const;

/** The manager of one node, fed by hand. */
function managerOf(self: string, members: readonly (typeof a)[]) {
  let view = viewOf(members.map((one) => one!), self);
  let state: ManagerState = initialManager('x', self, `${self}:1`);
  let now = 0;
  const feed = (event: ManagerEvent): readonly ManagerEffect[] => {
    const step = manage(state, event, view, now, 0);
    state = step.state;
    return step.effects;
  };
  feed({ kind: 'start', record, config: defaultManagerConfig });
  return {
    feed,
    see: (seen: readonly (typeof a)[]) => {
      view = viewOf(seen.map((one) => one!), self);
      return feed({ kind: 'view' });
    },
    pass: (ms: number) => (now += ms),
    answer: (uid: string, verdict: Extract<ManagerEvent, { kind: 'answer' }>['verdict'], nonce = `${self}/1`) =>
      feed({ kind: 'answer', uid, nonce, epochSeen: 0, epochStarted: 0, verdict }),
    get state() {
      return state;
    },
  };
}

const kinds = (effects: readonly ManagerEffect[]) => effects.map(({ kind }) => kind);
const verdicts = (effects: readonly ManagerEffect[]) =>
  effects.flatMap((effect) => effect.kind === 'answer' ? [effect.verdict.kind] : []);

/** `a`, alone until now, hosts. */
function hostA() {
  const manager = managerOf('a', [a]);
  assertEquals(manager.state.phase.kind, 'hosting');
  manager.feed({ kind: 'instance-started', epoch: manager.state.epochStarted });
  return manager;
}

describe('standing down', () => {
  test('R22, R24: a repeated request is answered alike, and the end is told when the instance has ended', () => {
    const manager = hostA();
    const leaving = { ...a!, status: 'leaving' as const };
    manager.see([leaving, b]);
    assertEquals(verdicts(manager.feed(request('b'))), ['stopping']);
    assertEquals(verdicts(manager.feed(request('b'))), ['stopping']);
    const { epochStarted: epoch } = manager.state;
    const done = manager.feed({ kind: 'instance-ended', epoch, cause: 'planned', watermarks: [], state: null });
    assertEquals(verdicts(done), ['handed-over']);
    assertEquals(verdicts(manager.feed(request('b'))), ['handed-over']);
  });

  test('R33, R34, A6: a stranger, a member that is not up and one that comes later are refused; the instance is untouched', () => {
    const manager = hostA();
    manager.see([a, b, { ...member('j', { started }), status: 'joining' }]);
    for (const uid of ['b', 'j', 'stranger']) {
      assertEquals(kinds(manager.feed(request(uid))).filter((kind) => kind !== 'log'), ['answer']);
      assertEquals(verdicts(manager.feed(request(uid))), ['refused']);
    }
    assertEquals(manager.state.phase.kind, 'hosting');
  });

  test('R31: the view flaps while the instance stops: it starts again only after its end, under a new epoch', () => {
    const manager = hostA();
    const first = manager.state.epochStarted;
    manager.feed({ kind: 'stop' });
    assertEquals(manager.state.phase.kind, 'stopping');
    for (let flap = 0; flap < 3; flap += 1) {
      manager.feed({ kind: 'start', record, config: defaultManagerConfig });
      assertEquals(kinds(manager.see([a, b])).includes('start-instance'), false);
      manager.see([a]);
    }
    const again = manager.feed({ kind: 'instance-ended', epoch: first, cause: 'planned', watermarks: [], state: null });
    assert(kinds(again).includes('start-instance'));
    assert(manager.state.epochStarted > first);
  });

  test('R63, R35: an answer to a question that was not asked changes nothing', () => {
    const manager = hostA();
    const before = manager.state;
    manager.answer('b', clear);
    assertEquals(manager.state, before);
  });
});

describe('becoming host', () => {
  test('R21, R24: everyone is asked, again every 250 ms, and it starts when the last has confirmed', () => {
    const leaving = { ...a!, status: 'leaving' as const };
    const manager = managerOf('b', [leaving, b, c]);
    assertEquals(manager.state.phase.kind, 'becoming-host');
    const again = manager.feed({ kind: 'timer', timer: 'resend' });
    assertEquals(again.flatMap((one) => one.kind === 'request' ? [one.to.uid] : []), ['a', 'c']);
    assertEquals(again.flatMap((one) => one.kind === 'set-timer' ? [[one.timer, one.ms]] : []), [['resend', 250]]);
    manager.answer('c', clear);
    manager.answer('a', { kind: 'stopping' });
    assertEquals(manager.state.phase.kind, 'becoming-host');
    assert(kinds(manager.answer('a', clear)).includes('start-instance'));
  });

  test('R25, A3: the wait is bounded only for a silent one: one that is stopping is waited for', () => {
    const leaving = { ...a!, status: 'leaving' as const, reachable: false };
    const silent = managerOf('b', [leaving, b]);
    silent.pass(10_000);
    assert(kinds(silent.feed({ kind: 'timer', timer: 'hand-over-timeout' })).includes('hosted-anyway'));
    const slow = managerOf('b', [leaving, b]);
    slow.answer('a', { kind: 'stopping' });
    slow.pass(600_000);
    assert(!kinds(slow.feed({ kind: 'timer', timer: 'hand-over-timeout' })).includes('start-instance'));
  });

  test('R26: whoever is removed or proven dead is waited for no longer, without a warning; one that is down is', () => {
    const down = { ...a!, status: 'down' as const, reachable: false };
    for (const gone of [[b, c], [{ ...down, terminated: true }, b, c]]) {
      const manager = managerOf('b', [{ ...a!, status: 'leaving' as const }, b, c]);
      manager.answer('c', clear);
      manager.see([down, b, c]);
      manager.pass(60_000);
      manager.feed({ kind: 'timer', timer: 'hand-over-timeout' });
      assertEquals(manager.state.phase.kind, 'becoming-host');
      const effects = manager.see(gone);
      assert(kinds(effects).includes('start-instance') && !kinds(effects).includes('hosted-anyway'));
      assertEquals(effects.filter((effect) => effect.kind === 'log' && effect.level === 'warn'), []);
    }
  });

  test('R46, R47: of two results the newest counts; one is dropped when it has been used, and forgotten after a minute', () => {
    const result = (epoch: number, byte: number): HandOverResult => ({
      epoch,
      plannedSince: epoch,
      from: 'a:1',
      watermarks: [],
      state: new Uint8Array([byte]),
      endedAt: 0,
      offeredTo: [],
      givenUp: [],
    });
    for (const order of [[5, 7], [7, 5]]) {
      const manager = managerOf('b', [{ ...a!, status: 'leaving' as const }, b, { ...c!, status: 'leaving' as const }]);
      manager.answer('a', { kind: 'handed-over', result: result(order[0]!, order[0]!) });
      const effects = manager.answer('c', { kind: 'handed-over', result: result(order[1]!, order[1]!) });
      const start = effects.find((effect) => effect.kind === 'start-instance');
      assertEquals([...start!.previous!.state!], [7]);
      assertEquals(manager.state.kept, undefined);
    }
    const manager = hostA();
    manager.feed({ kind: 'stop' });
    const { epochStarted: epoch } = manager.state;
    manager.feed({ kind: 'instance-ended', epoch, cause: 'planned', watermarks: [], state: new Uint8Array([1]) });
    assert(manager.state.kept !== undefined);
    manager.feed({ kind: 'timer', timer: 'kept' });
    assertEquals(manager.state.kept, undefined);
  });
});

test('S3: the result was offered to a member that gave up and left: its custodian is asked once more before it is given up', () => {
  const result = (offeredTo: string[]): HandOverResult => ({
    epoch: 5,
    plannedSince: 5,
    from: 'a:1',
    watermarks: [],
    state: new Uint8Array([1]),
    endedAt: 0,
    offeredTo,
    givenUp: [],
  });
  const leaving = { ...a!, status: 'leaving' as const };
  for (const [second, reason] of [[[], 'planned'], [['gone/1'], 'crash']] as const) {
    const manager = managerOf('b', [leaving, b, c]);
    manager.answer('c', clear);
    const again = manager.answer('a', { kind: 'handed-over', result: result(['gone/1']) });
    assertEquals(again.flatMap((one) => one.kind === 'request' ? [[one.to.uid, one.nonce]] : []), [
      ['a', 'b/2'],
      ['c', 'b/2'],
    ]);
    manager.answer('a', { kind: 'handed-over', result: result(['gone/1']) });
    assertEquals(manager.state.phase.kind, 'becoming-host', 'an answer to the first question counts no more');
    manager.answer('c', clear, 'b/2');
    const effects = manager.answer('a', { kind: 'handed-over', result: result([...second]) }, 'b/2');
    const start = effects.find((effect) => effect.kind === 'start-instance');
    assertEquals(start?.report.reason, reason);
  }
});

/** Notes the order of its hooks. */
function hooked(lines: string[], state: Uint8Array | null, hooks: 'both' | 'half' | 'none') {
  return class Hooked extends Actor<string> {
    static readonly singleton: SingletonKey<string> = SingletonKey.of<string>('hooked');
    constructor() {
      super();
      lines.push('constructor');
      const own = this as unknown as Record<string, unknown>;
      if (hooks !== 'none') {
        own['serializeForHandOver'] = () => {
          lines.push('serialize');
          return state;
        };
      }
      if (hooks === 'both') own['restoreFromHandOver'] = (bytes: Uint8Array) => lines.push(`restore ${[...bytes]}`);
    }
    override preStart(): void {
      lines.push('preStart');
    }
    override postStop(): void {
      lines.push('postStop');
    }
    override onReceive(message: string): void {
      if (message === 'fail') throw new Error('asked to');
      if (message === 'end') this.context.stopSelf();
    }
  };
}

async function moved(state: Uint8Array | null, hooks: 'both' | 'half' | 'none', cause: 'move' | 'end' = 'move') {
  const lines: string[] = [];
  const Hooked = hooked(lines, state, hooks);
  const cluster = new MemoryCluster();
  await cluster.grow(2);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Hooked));
  await cluster.until(() => lines.length === 2);
  if (cause === 'end') refs[0]!.tell('end');
  else cluster.nodes[0]!.cluster.singleton.move('hooked', cluster.nodes[1]!.address);
  await cluster.until(() => lines.filter((line) => line === 'preStart').length === 2);
  const warnings = cluster.environment.logged.filter(({ level, message }) =>
    level === 'warn' && /cold|state/.test(message)
  );
  return { lines: lines.slice(2), warnings: warnings.length };
}

describe('warm state', () => {
  test('R39, R40: serialised once, after postStop; restored after the constructor and before preStart', async () => {
    const { lines, warnings } = await moved(new Uint8Array([4, 2]), 'both');
    assertEquals(lines, ['postStop', 'serialize', 'constructor', 'restore 4,2', 'preStart']);
    assertEquals(warnings, 0);
  });

  test('R38, R41, R44: half an implementation is none, no state is a cold start, and an actor without hooks warns of nothing', async () => {
    for (const state of [null, new Uint8Array()]) {
      const { lines, warnings } = await moved(state, 'both');
      assertEquals([lines, warnings], [['postStop', 'serialize', 'constructor', 'preStart'], 0]);
    }
    for (const hooks of ['half', 'none'] as const) {
      const { lines, warnings } = await moved(new Uint8Array([1]), hooks);
      assertEquals([lines, warnings], [['postStop', 'constructor', 'preStart'], 0]);
    }
  });

  test('R39, FB-031: never from an instance that ended by itself', async () => {
    const { lines } = await moved(new Uint8Array([1]), 'both', 'end');
    assertEquals(lines, ['postStop', 'constructor', 'preStart']);
  });
});

test('FB-030: a handler that is busy for longer than every time-out: the move waits, and its message is not handled twice', async () => {
  const scene = new Scene();
  for (let n = 0; n < 2; n += 1) await scene.add({ stopTimeoutMs: 60_000 });
  const [first, second] = scene.nodes as [MemoryNode, MemoryNode];
  await scene.untilHost(first);
  scene.workMs = 20_000;
  scene.tell(second, 1);
  await scene.cluster.pass(100);
  first.cluster.singleton.move('jobs', second.address);
  const waited = await scene.untilHost(second, 60_000);
  assert(waited > 19_000, `${waited} ms`);
  scene.workMs = 0;
  scene.tell(second, 1);
  await scene.allHandled();
});

test('R20: systems of one cluster may have different names', async () => {
  const cluster = new MemoryCluster();
  const joined: Cluster[] = [];
  for (const name of ['one', 'two']) {
    const system = ActorSystem.create(name, { environment: cluster.environment, logger: cluster.environment.log });
    const address = `127.0.0.1:${joined.length + 500}`;
    const joining = Cluster.join(system, {
      name: 'together',
      seeds: joined.map((other) => other.address),
      http: false,
      transport: (identity) => cluster.network.transport({ address, ...identity }),
    });
    joined.push(await cluster.get(joining));
  }
  class Echo extends Actor<string> {
    override onReceive(message: string): void {
      this.context.sender.tell(`${message} from ${this.context.system.name}`);
    }
  }
  const key = SingletonKey.of<string>('echo');
  const refs = joined.map(({ singleton }) => singleton.start(key, () => new Echo()));
  assertEquals(await cluster.get(refs[1]!.ask('hello')), 'hello from one');
});

test('FB-005: both sides of a split live on: when it heals exactly one instance is left, where the oldest member is', async () => {
  for (let round = 0; round < 3; round += 1) {
    const scene = new Scene();
    for (let n = 0; n < 4; n += 1) await scene.add({}, { downing: 'manual' });
    const [first, second, third, fourth] = scene.nodes as MemoryNode[] & { length: 4 };
    await scene.untilHost(first!);
    for (const here of [first!, second!]) {
      for (const there of [third!, fourth!]) scene.cluster.network.cut(here.address, there.address);
    }
    await scene.cluster.pass(3_000);
    for (const here of [first!, second!]) for (const there of [third!, fourth!]) here.cluster.down(there.address);
    for (const there of [third!, fourth!]) for (const here of [first!, second!]) there.cluster.down(here.address);
    await scene.cluster.until(() => scene.hosts().length === 2);
    for (const here of [first!, second!]) {
      for (const there of [third!, fourth!]) scene.cluster.network.heal(here.address, there.address);
    }
    await scene.cluster.until(() => scene.hosts().length === 1, 60_000);
    await scene.untilHost(first!);
    await scene.cluster.until(() => scene.nodes.every(({ cluster }) => cluster.upMembers().length === 4), 60_000);
    assertEquals(scene.lines.filter(([what, at]) => what === 'stop' && at === third!.address).length, 1);
    await scene.reachedAt(first!);
  }
});
