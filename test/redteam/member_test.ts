/**
 * A member that has the secret and turns against the others: what each of its forged messages comes to. After every attack the
 * host still answers, nothing was ever started twice, and nobody's process has thrown.
 */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import type { GossipState, MemberRecord } from '../../src/cluster/gossip_state.ts';
import { limits } from '../../src/limits.ts';
import { codes } from '../../src/wire/codes.ts';
import { encode } from '../../src/wire/codec.ts';
import type { Envelope } from '../../src/wire/frames.ts';
import { ForgedRef, RogueScene } from './rogue.ts';

interface Attack {
  readonly name: string;
  readonly run: (scene: RogueScene) => void | Promise<void>;
  /** What is seen afterwards, beside what holds after every attack. */
  readonly then: (scene: RogueScene) => void | Promise<void>;
  /** Virtual time for the attack to have its effect. Default 3 s. */
  readonly passMs?: number;
}

const statuses = (scene: RogueScene, node = scene.host) =>
  node.cluster.getMembers().map((member) => `${member.address.split(':')[1]} ${member.status}`);

/** Gossip in which the record of one member is another one. */
function edited(uid: string, change: Partial<MemberRecord>): (state: GossipState) => GossipState {
  return (state) => ({
    ...state,
    records: new Map(state.records).set(uid, { ...state.records.get(uid)!, ...change }),
  });
}

const everybodyUp = ['101 up', '102 up', '666 up'];

const nonceOf = (scene: RogueScene, node = scene.rogue) => `${node.cluster.uid}/1`;

async function counted(scene: RogueScene, what: string, atLeast = 1): Promise<void> {
  const count = await scene.metric(`what="${what}"`);
  assert(count >= atLeast, `${what}: ${count}`);
}

/** Never done with its first message. */
class Sleepy extends Actor<unknown> {
  override onReceive(): Promise<void> {
    return new Promise(() => {});
  }
}

const attacks: readonly Attack[] = [
  {
    name: 'says that another member leaves: that one joins again as a new member, nobody hangs',
    run: (scene) => scene.gossip(edited(scene.heir.cluster.uid, { status: 'leaving', selfVersion: 50 })),
    then: (scene) => assertEquals(statuses(scene).sort(), everybodyUp),
    passMs: 20_000,
  },
  {
    name: 'says to the host that the host leaves: it hands nothing over by force and comes back',
    run: (scene) => scene.gossip(edited(scene.host.cluster.uid, { status: 'exiting' })),
    then: (scene) => assertEquals(statuses(scene, scene.heir).sort(), everybodyUp),
    passMs: 20_000,
  },
  {
    name: 'R116: speaks for the host about what it hosts: the host refutes it everywhere',
    run: (scene) => {
      const hosting = new Map([['counter', { epoch: 1, plannedSince: 1, since: 1 }]]);
      scene.gossip(edited(scene.host.cluster.uid, { selfVersion: 900, hosting }));
      scene.tap.forge(scene.heir.address, 'system', [codes.gossip, null]);
    },
    then: async (scene) => {
      await counted(scene, 'refused claim');
      assertEquals(statuses(scene), everybodyUp);
    },
  },
  {
    name: 'R117: claims with a version that jumps too far to be answered',
    run: (scene) => scene.gossip(edited(scene.heir.cluster.uid, { selfVersion: limits.counterJump * 3 })),
    then: (scene) => counted(scene, 'refused gossip'),
  },
  {
    name: 'R116: gives itself a role that it did not prove at the handshake',
    run: (scene) => scene.gossip(edited(scene.rogue.cluster.uid, { roles: ['admin'], selfVersion: 9 })),
    then: async (scene) => {
      await counted(scene, 'refused gossip');
      assert(scene.host.cluster.getMembers().every(({ roles }) => roles.length === 0));
    },
  },
  {
    name: 'gives itself the number of the oldest, to become host',
    run: (scene) => scene.gossip(edited(scene.rogue.cluster.uid, { upNumber: 1 })),
    then: async (scene) => {
      await counted(scene, 'refused gossip');
      assertEquals(scene.journal.lines, ['start 127.0.0.1:101']);
    },
  },
  {
    name: 'moves another member to an address of its own',
    run: (scene) => scene.gossip(edited(scene.heir.cluster.uid, { address: '127.0.0.1:667' })),
    then: (scene) => counted(scene, 'refused gossip'),
  },
  {
    name: 'brings a removed member back',
    run: async (scene) => {
      const { memory } = scene;
      const fourth = await memory.join({ rejoin: false });
      const [uid, address] = [fourth.cluster.uid, fourth.address];
      await memory.leave(fourth);
      await memory.until(() => scene.host.cluster.getMembers().length === 3);
      const record: MemberRecord = {
        uid,
        address,
        status: 'up',
        upNumber: 4,
        terminated: false,
        selfVersion: 99,
        roles: [],
        runtime: 'memory',
        appVersion: '',
        started: new Map([['counter', { generation: 1, role: undefined }]]),
        hosting: new Map(),
      };
      scene.gossip((state) => ({ ...state, lastNumber: 4, records: new Map(state.records).set(uid, record) }));
    },
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
  },
  {
    name: 'gossips in the name of another cluster',
    run: (scene) => scene.gossip((state) => ({ ...state, clusterId: 'mine' })),
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
  },
  {
    name: 'gossips about another formation',
    run: (scene) => scene.gossip((state) => ({ ...state, formedAt: 1 })),
    then: (scene) => counted(scene, 'refused gossip'),
  },
  {
    name: 'asks the host to stop although it is not next: no',
    run: (scene) => scene.forge('system', [codes.handOverRequest, 'counter', nonceOf(scene), 1]),
    then: (scene) => assertEquals(scene.journal.lines, ['start 127.0.0.1:101']),
  },
  {
    name: 'asks with an absurd epoch: the host answers, and does not take it up',
    run: (scene) =>
      scene.forge('system', [codes.handOverRequest, 'counter', nonceOf(scene), Number.MAX_SAFE_INTEGER], [
        codes.handOverRequest,
        'counter',
        nonceOf(scene),
        -1,
      ]),
    then: async (scene) => {
      assertEquals(scene.journal.lines, ['start 127.0.0.1:101']);
      assert(await scene.metric('singlet_singleton_epoch') < limits.epochJump);
    },
  },
  {
    name: 'asks and takes back in the name of an attempt of the heir: malformed',
    run: (scene) => {
      const other = nonceOf(scene, scene.heir);
      scene.forge('system', [codes.handOverRequest, 'counter', other, 1], [codes.handOverWithdraw, 'counter', other]);
    },
    then: async (scene) => assert(await scene.metric('singlet_singleton_messages_malformed_total') >= 2),
  },
  {
    name: 'answers a question that nobody asked, with state of its own',
    run: (scene) => {
      const result = [5, 5, '127.0.0.1:102', [], [], []];
      scene.forge(
        'system',
        [codes.stateChunk, 'counter', 'nonce', 0, new Uint8Array(1_000)],
        [codes.handOverAnswer, 'counter', 'nonce', 5, 5, 2, result, 0, 1_000, 0],
        [codes.handOverWithdraw, 'counter', nonceOf(scene)],
        [codes.stateMore, 'counter', 'nonce', 10 ** 9],
      );
    },
    then: (scene) => assertEquals(scene.journal.lines, ['start 127.0.0.1:101']),
  },
  {
    name: 'sends hand-over messages with impossible fields',
    run: (scene) =>
      scene.forge(
        'system',
        [codes.handOverAnswer, 'counter', 'n', 0, 0, 99, null, 0, -1, 0],
        [codes.handOverAnswer, 'counter', 'n', 0, 0, 2, [1, 9, 'x', [], [], []], 0, -1, 0],
        [codes.stateChunk, 'counter', 'n', -1, 'text'],
        [codes.handOverRequest, 'x'.repeat(300), 'n', 0],
        [codes.handOverRequest, { toString: 'counter' }, 'n', 0],
        [codes.streamOpen, 'counter', 0, 5, 0, false],
        [codes.streamOpen, 'counter', 1, limits.streamWindow * 2, 0, false],
      ),
    then: async (scene) => assert(await scene.metric('singlet_singleton_messages_malformed_total') >= 7),
  },
  {
    name: 'acknowledges messages in the name of the host: the sender does not forget them',
    run: (scene) => {
      const heir = scene.heir.cluster.singleton.ref<number>('counter');
      scene.memory.network.cut(scene.heir.address, scene.host.address);
      for (let i = 0; i < 5; i++) heir.tell(i);
      scene.tap.forge(scene.heir.address, 'system', [codes.acknowledge, 'counter', 5, []], [
        codes.streamOpened,
        'counter',
        9,
        9,
        0,
        6,
        5,
        [],
      ]);
    },
    then: async (scene) => {
      scene.memory.network.heal(scene.heir.address, scene.host.address);
      await scene.memory.until(() => scene.journal.got.length >= 5);
      assertEquals(scene.journal.got, [0, 1, 2, 3, 4]);
    },
    passMs: 500,
  },
  {
    name: 'delivers to an epoch that never was',
    run: (scene) => scene.forge('user', [codes.deliver, 'counter', 777, 1, 0, null, 42]),
    then: (scene) => assertEquals(scene.journal.got, []),
  },
  {
    name: 'reaches into /system, however it spells it',
    run: (scene) => {
      const paths = [
        '/system',
        '/system/singletons/counter/instance',
        '/user/../system/singletons',
        '//system',
        '/SYSTEM/x',
      ];
      const tells = paths.map((path): Envelope => [codes.tell, path, null, 'stop-self', 0]);
      const stops = paths.map((path): Envelope => [codes.stop, path, 0]);
      const watches = paths.map((path): Envelope => [codes.watch, path, 0]);
      scene.forge('user', ...tells, ...stops, ...watches);
    },
    then: (scene) => assertEquals(scene.journal.lines, ['start 127.0.0.1:101']),
  },
  {
    name: 'floods paths that do not exist: dead letters, counted, the kept ones bounded',
    run: async (scene) => {
      for (let round = 0; round < 50; round++) {
        const tells = Array.from({ length: 200 }, (_, i): Envelope => [codes.tell, `/user/x${round}-${i}`, null, i, 0]);
        scene.forge('user', ...tells);
        await scene.memory.pass(5);
      }
    },
    then: async (scene) => assert(await scene.metric('reason="no-such-actor"') >= 10_000),
  },
  {
    name:
      'tells one slow actor at full speed: its node holds what it may, the rest are dead letters, everybody goes on',
    run: async (scene) => {
      scene.host.system.spawn(() => new Sleepy(), 'sleepy');
      const text = 'x'.repeat(limits.frameBytes - 1_000);
      for (let sent = 0; sent < limits.remoteMailPeerBytes + 10 * text.length; sent += text.length) {
        scene.forge('user', [codes.tell, '/user/sleepy', null, text, 0]);
        await scene.memory.pass(5);
      }
    },
    then: async (scene) => {
      const lost = await scene.metric('reason="mailbox-overflow"');
      assert(lost >= 9 && lost <= 11, String(lost));
      assertEquals(scene.warnings().filter((line) => line.includes('as much from other nodes')).length, 1);
      assertEquals(statuses(scene), everybodyUp);
    },
  },
  {
    name: 'invents thousands of singletons: the table is bounded, real ones go on',
    run: async (scene) => {
      for (let round = 0; round < 30; round++) {
        const asks = Array.from(
          { length: 400 },
          (_, i): Envelope => [codes.streamOpen, `s${round}-${i}`, 1, 1, 0, false],
        );
        scene.forge('system', ...asks);
        await scene.memory.pass(5);
      }
    },
    then: async (scene) => {
      const response = await scene.memory.get(
        Promise.resolve(scene.host.cluster.fetch(new Request('http://x/cluster/singletons'))),
      );
      const { singletons } = await response.json() as { singletons: readonly unknown[] };
      assert(singletons.length <= limits.singletons / 2 + 1, String(singletons.length));
    },
  },
  {
    name: 'repeats nonsense for ever: what is logged is bounded, what is counted is not',
    run: async (scene) => {
      for (let round = 0; round < 100; round++) {
        scene.forge(
          'system',
          ...Array.from({ length: 20 }, (): Envelope => [codes.gossip, 'nonsense']),
          ...Array.from({ length: 20 }, (): Envelope => [codes.handOverRequest, 5, 5, 5]),
          ...Array.from({ length: 20 }, (): Envelope => [codes.spawn, 'x', 'y']),
          ...Array.from({ length: 20 }, (): Envelope => [codes.leaseAsk, {}, []]),
        );
        await scene.memory.pass(5);
      }
    },
    then: async (scene) => {
      await counted(scene, 'refused gossip', 2_000);
      assert(await scene.metric('singlet_singleton_messages_malformed_total') >= 2_000);
      assert(scene.warnings().length < 120, String(scene.warnings().length));
      assertEquals(scene.memory.environment.logsAt('error'), []);
    },
  },
  {
    name: 'sends unknown codes and codes of other types',
    run: (scene) =>
      scene.forge('system', [9_999], [4_000_000_000, null], [codes.heartbeatAck, -1], [codes.heartbeat, 'x', {}]),
    then: (scene) => counted(scene, 'refused heartbeat', 2),
  },
  {
    name: 'acknowledges heartbeats in advance',
    run: (scene) => scene.forge('system', [codes.heartbeatAck, 10 ** 12]),
    then: (scene) => counted(scene, 'refused heartbeat'),
  },
  {
    name: 'says that it has lost its links to everybody: nobody is taken for dead',
    run: (scene) =>
      scene.forge('system', [codes.heartbeat, 1, [scene.heir.cluster.uid, scene.host.cluster.uid]], [
        codes.heartbeat,
        2,
        Array.from({ length: 900 }, (_, i) => `u${i}`),
      ]),
    then: (scene) => assert(scene.host.cluster.getMembers().every(({ reachable }) => reachable)),
    passMs: 10_000,
  },
  {
    name: 'answers the spawn that the leader was asked for: the caller goes on waiting for the leader',
    run: async (scene) => {
      const { memory, heir, host } = scene;
      memory.network.cut(heir.address, host.address);
      let outcome = 'waits';
      heir.cluster.singleton.spawn('task', 'no-such-kind').then(() => outcome = 'spawned', () => outcome = 'failed');
      await memory.pass(50);
      for (let number = 0; number < 50; number++) {
        scene.tap.forge(heir.address, 'system', [codes.spawn, 1, number, null], [codes.spawn, 3, number, true]);
      }
      await memory.pass(50);
      assertEquals(outcome, 'waits');
      memory.network.heal(heir.address, host.address);
    },
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
    passMs: 10_000,
  },
  {
    name: 'sends keys that would pollute prototypes',
    run: (scene) => {
      const evil = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as object;
      scene.forge(
        'user',
        [codes.tell, '/user/nobody', null, evil, 0],
        [codes.deliver, 'counter', 1, 1, 0, null, evil],
        [codes.tell, '__proto__', evil, evil, evil],
      );
      scene.forge('system', [codes.spawn, 0, 1, ['kind', '__proto__'], evil], [codes.gossip, evil]);
    },
    then: () => assertFalse('polluted' in ({} as object)),
  },
  {
    name: 'sends refs to places that it makes up',
    run: (scene) => {
      const refs = [
        new ForgedRef('127.0.0.1:1', scene.host.cluster.uid, '/system/singletons/counter/instance', 0),
        new ForgedRef('', 'singleton', 'no such thing', 0),
        new ForgedRef('', 'no such scheme', '__proto__', 0),
        new ForgedRef('x'.repeat(5_000), 'u', '/user/a', 0),
        new ForgedRef('h:1', 'u', '/user/a', -5),
        new ForgedRef(1, 2, 3, 4),
      ];
      for (const ref of refs) scene.forge('user', [codes.tell, '/user/nobody', ref, { answerTo: ref }, 0]);
    },
    then: async (scene) => {
      assert(await scene.metric('what="undecodable"') >= 4);
      assertEquals(scene.journal.lines, ['start 127.0.0.1:101']);
    },
  },
  {
    name: 'puts a regular expression that takes for ever into a message: it is never run',
    run: (scene) => scene.forge('user', [codes.tell, '/user/nobody', null, [/(a+)+$/, 'a'.repeat(50_000)], 0]),
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
  },
  {
    name: 'watches more actors than a peer may',
    run: async (scene) => {
      for (let round = 0; round < 11; round++) {
        const watches = Array.from({ length: 10_000 }, (_, i): Envelope => [codes.watch, `/user/w${round}-${i}`, 1]);
        scene.forge('system', ...watches);
        await scene.memory.pass(5);
      }
    },
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
  },
  {
    name: 'announces a message of four gigabytes and sends one byte',
    run: (scene) => scene.tap.raw(scene.host.address, Uint8Array.of(0x53, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0)),
    then: (scene) => counted(scene, 'malformed'),
    passMs: 10_000,
  },
  {
    name: 'begins large messages and never ends them: one for each lane, then the link is closed',
    run: (scene) => {
      const part = (kind: number, lane: number) => Uint8Array.of(0x53, 1, lane, kind, 0, 0x3f, 0, 0, 1, 2, 3);
      for (const lane of [0, 1]) scene.tap.raw(scene.host.address, part(1, lane));
      scene.tap.raw(scene.host.address, part(1, 1));
    },
    then: (scene) => counted(scene, 'malformed'),
    passMs: 10_000,
  },
  {
    name: 'nests an array deeper than anything may be',
    run: (scene) => {
      const deep = new Uint8Array(4 + limits.depth * 4).fill(0x81);
      deep.set([0x53, 1, 1, 0]);
      scene.tap.raw(scene.host.address, deep);
    },
    then: (scene) => counted(scene, 'malformed'),
    passMs: 10_000,
  },
  {
    name: 'claims a map of two billion entries in nine bytes',
    run: (scene) =>
      scene.tap.raw(scene.host.address, Uint8Array.of(0x53, 1, 1, 0, 0x82, 1, 0xba, 0x7f, 0xff, 0xff, 0xff)),
    then: (scene) => counted(scene, 'malformed'),
    passMs: 10_000,
  },
  {
    name: 'settles links that were never opened',
    run: (scene) => {
      for (const kind of [4, 5]) {
        scene.tap.raw(scene.host.address, Uint8Array.of(0x53, 1, 0, kind, 0xff, 0xff, 0xff, 0xff));
      }
    },
    then: (scene) => assertEquals(statuses(scene).slice(0, 2), everybodyUp.slice(0, 2)),
    passMs: 10_000,
  },
  {
    name: 'grants itself a lease, and answers for other voters',
    run: (scene) =>
      scene.forge(
        'system',
        ...[0, 1, 2, 3, 4].map((step): Envelope => [codes.leaseAnswer, step, step, 'counter', true, 10 ** 15]),
        [codes.leaseAsk, 'counter', 1, '127.0.0.1:666#x', 10 ** 15, 10 ** 15],
      ),
    then: (scene) => assertEquals(statuses(scene), everybodyUp),
  },
  {
    name: 'R118: writes thousands of cluster entries: bounded, and members stay',
    run: (scene) =>
      scene.gossip((state) => ({
        ...state,
        entries: new Map(
          Array.from(
            { length: limits.entries * 2 + 1 },
            (_, i) => [`k${i}`, { key: `k${i}`, version: 1, by: 'x', value: i }],
          ),
        ),
      })),
    then: async (scene) => {
      await counted(scene, 'refused gossip');
      assertEquals(statuses(scene), everybodyUp);
    },
  },
];

describe('red team: a member', () => {
  for (const attack of attacks) {
    test(`S7: ${attack.name}`, async () => {
      const scene = await RogueScene.open();
      await scene.learnCluster();
      await attack.run(scene);
      await scene.memory.pass(attack.passMs ?? 3_000);
      await attack.then(scene);
      await unharmed(scene);
    });
  }

  test('the forgeries are made as nodes make their messages', () => {
    assertEquals(encode([codes.tell, '/user/x', null, 1, 0])[0], 0x85);
  });
});

/** One instance at most, ever; the cluster answers; and no handler has thrown. */
async function unharmed(scene: RogueScene): Promise<void> {
  const { memory, journal, host, heir } = scene;
  assertEquals(journal.peak, 1);
  const answer = await memory.get(
    heir.cluster.singleton.ref<'where'>('counter').ask('where', 20_000),
  );
  assert(typeof answer === 'string');
  assertEquals(journal.peak, 1);
  for (const node of [host, heir]) {
    const errors = memory.environment.logged.filter(({ level }) => level === 'error');
    assertEquals(await scene.metric('what="handlerErrors"', node), 0, JSON.stringify(errors));
    assertEquals(node.cluster.selfMember.status, 'up');
  }
}
