import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import type { MembershipNode } from '../../src/cluster/contract.ts';
import { DeliveryHost } from '../../src/singleton/delivery_host.ts';
import { type OpenMessage, readOpen } from '../../src/singleton/messages.ts';
import { hostOf } from '../../src/singleton/host.ts';
import { SingletonProxy } from '../../src/singleton/proxy.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { Envelope } from '../../src/transport/peers_contract.ts';
import { codes } from '../../src/wire/codes.ts';
import { member, viewOf } from './manager_world.ts';

const started = new Map([['x', { generation: 1, role: undefined }]]);
const [first, second, self] = [
  member('first', { upNumber: 1, started }),
  member('second', { upNumber: 2, started }),
  member('self', { upNumber: 3 }),
];

function hostOfEpoch(epoch: number): DeliveryHost {
  const host = new DeliveryHost({ deliver: () => {}, acknowledge: () => {}, resume: () => {}, wantsFlush: () => {} });
  host.begin(epoch, epoch, []);
  return host;
}

const delivery = (seq: number) => ({ seq, message: seq, sender: undefined, bytes: 1, repeat: false });

/** A proxy on `self`, and what it sends. */
function proxyOnSelf() {
  const environment = new ManualEnvironment();
  const opens: OpenMessage[] = [];
  const sent: number[] = [];
  const dead: unknown[] = [];
  const known = { view: viewOf([first!, second!, self!], 'self'), linked: true };
  const node = {
    environment,
    uid: 'self',
    address: 'self:1',
    view: () => known.view,
    sendSystem: (_address: string, envelope: Envelope) => {
      if (envelope[0] === codes.streamOpen) opens.push(readOpen(envelope));
    },
    sendUser: (_address: string, envelope: Envelope) => void sent.push(envelope[3] as number),
    messages: { weigh: () => 1 },
    linked: () => known.linked,
  } as unknown as MembershipNode;
  const proxy = new SingletonProxy({
    name: 'x',
    node,
    local: { open: () => undefined, offer: () => 'stale' },
    host: () => hostOf(known.view, 'x'),
    role: () => undefined,
    senderField: (sender) => sender ?? null,
    deadLetter: (message) => dead.push(message),
  });
  return { proxy, environment, opens, sent, dead, known };
}

test('S3: what is told after the link to the host is lost is not given up with it, but goes to the next host', () => {
  const { proxy, opens, sent, dead, known } = proxyOnSelf();
  const answer = (host: DeliveryHost, uid: string, open: OpenMessage) => {
    const { epoch, plannedSince } = host;
    proxy.onOpened(uid, `${uid}:1`, { name: 'x', epoch, plannedSince, ...host.open('self', open)! });
  };
  proxy.tell('a', undefined);
  answer(hostOfEpoch(10), 'first', opens[0]!);
  known.linked = false;
  proxy.tell('b', undefined);
  proxy.tell('c', undefined);
  assertEquals([sent, proxy.stream.waiting], [[1], 2]);
  known.view = viewOf([second!, self!], 'self');
  proxy.onView();
  known.linked = true;
  answer(hostOfEpoch(20), 'second', opens[1]!);
  assertEquals([dead, sent], [['a'], [1, 2, 3]]);
  proxy.end();
});

test('S3: an open that is repeated and answered twice after a crash gives up nothing that was sent to the new host', () => {
  const { proxy, environment, opens, sent, dead, known } = proxyOnSelf();
  const [epoch, later] = [10, 20];
  for (let n = 1; n <= 3; n += 1) proxy.tell(n, undefined);
  const answer = (host: DeliveryHost, uid: string, open: OpenMessage) => {
    const { epoch, plannedSince } = host;
    proxy.onOpened(uid, `${uid}:1`, { name: 'x', epoch, plannedSince, ...host.open('self', open)! });
  };
  answer(hostOfEpoch(epoch), 'first', opens[0]!);
  assertEquals(sent, [1, 2, 3]);

  known.view = viewOf([second!, self!], 'self');
  proxy.onView();
  environment.advance(250);
  assertEquals(opens.slice(1).map(({ base, next, lastSentEpoch }) => [base, next, lastSentEpoch]), [
    [1, 4, epoch],
    [1, 4, epoch],
  ]);

  const host = hostOfEpoch(later);
  answer(host, 'second', opens[1]!);
  assertEquals(dead, [1, 2, 3]);
  for (let n = 4; n <= 6; n += 1) proxy.tell(n, undefined);
  for (const seq of sent.slice(3)) assertEquals(host.offer('self', delivery(seq)), 'accepted');
  answer(host, 'second', opens[2]!);
  assertEquals(dead, [1, 2, 3], 'the second answer changes nothing');
  proxy.tell(7, undefined);
  assertEquals(host.offer('self', delivery(sent.at(-1)!)), 'accepted', 'the filter has not gone back');
  assertEquals([proxy.stream.ledger().outcomeUnknown, proxy.stream.buffered], [3, 4]);
  proxy.end();
});
