/** Nodes with an actor system and links, and nothing else of a cluster. */
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import type { Terminated } from '../../src/actor/watch.ts';
import { RemoteMail } from '../../src/cluster/remote_mail.ts';
import { Remoting } from '../../src/cluster/remoting.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { createPeers, type LinkedPeers } from '../../src/transport/peers.ts';
import { Codec } from '../../src/wire/codec.ts';
import { FakeNet } from '../transport/fake_net.ts';

export interface Node {
  readonly system: ActorSystem;
  readonly remoting: Remoting;
  readonly peers: LinkedPeers;
  readonly address: string;
  readonly uid: string;
}

export const A = '127.0.0.1:1';
export const B = '127.0.0.1:2';

export function start(
  env: ManualEnvironment,
  net: FakeNet,
  address: string,
  uid: string,
  mail = new RemoteMail(),
): Node {
  const system = ActorSystem.create('test', { environment: env, logger: env.log });
  const remoting = new Remoting({ system, uid, mail });
  const peers = createPeers({
    environment: env,
    transport: net.transport(address, uid),
    codec: new Codec({ refs: remoting.refs }),
    uid,
    onUndeliverable: (to, envelope, reason) => void remoting.undeliverable(to, envelope, reason),
    events: {
      connected: (peer) => remoting.connected(peer),
      disconnected: (peer) => remoting.disconnected(peer),
      dialFailed: () => {},
      message: (peer, envelope, bytes) => void remoting.receive(peer, envelope, bytes),
      listenerLost: () => {},
    },
  });
  return { system, remoting, peers, address, uid };
}

export async function pair(mail?: RemoteMail): Promise<{ env: ManualEnvironment; net: FakeNet; a: Node; b: Node }> {
  const env = new ManualEnvironment();
  const net = new FakeNet(env, { delay: () => 2 });
  const a = start(env, net, A, 'ua');
  const b = start(env, net, B, 'ub', mail);
  for (const node of [a, b]) await open(node);
  return { env, net, a, b };
}

export async function open(node: Node): Promise<void> {
  await node.peers.start();
  node.remoting.attach(node.peers);
}

/** Keeps what it gets; does what it is told. */
export class Probe extends Actor<any> {
  readonly got: unknown[] = [];
  readonly senders: ActorRef<any>[] = [];
  readonly ended: Terminated[] = [];

  override onReceive(message: any): void {
    this.got.push(message);
    if (this.context.hasSender) this.senders.push(this.context.sender);
    if (message?.do === 'watch') this.context.watch(message.ref);
    if (message?.do === 'unwatch') this.context.unwatch(message.ref);
    if (message?.do === 'reply') this.context.sender.tell(message.value, this.context.self);
    if (message?.do === 'say') message.to.tell(message.value, this.context.self);
    if (message?.do === 'stop') this.context.stopSelf();
  }

  override onTerminated(notice: Terminated): void {
    this.ended.push(notice);
  }
}

export function probe(node: Node, name: string): { actor: Probe; ref: ActorRef<any> } {
  let actor: Probe | undefined;
  const ref = node.system.spawn(() => actor = new Probe(), name);
  return {
    ref,
    get actor() {
      return actor!;
    },
  };
}

/** The ref of an actor of `there` as `here` has it. */
export function remote(here: Node, there: Node, ref: ActorRef<any>): ActorRef<any> {
  return here.remoting.refTo({
    address: there.address,
    uid: there.uid,
    localPath: ref.path,
    incarnation: ref.incarnation,
  });
}
