/** Nodes with nothing above their links, on a fake network and a clock moved by hand. */
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { Address, DialFailure, PeerIdentity } from '../../src/transport/contract.ts';
import { createPeers, type LinkedPeers } from '../../src/transport/peers.ts';
import type { Envelope } from '../../src/transport/peers_contract.ts';
import { Codec } from '../../src/wire/codec.ts';
import { FakeNet, type FakeNetOptions } from './fake_net.ts';

export interface PeersNode {
  readonly peers: LinkedPeers;
  readonly got: Envelope[];
  readonly events: string[];
  readonly undelivered: { readonly reason: string; readonly envelope: Envelope }[];
  readonly failures: DialFailure[];
  onMessage: (peer: PeerIdentity, envelope: Envelope) => void;
}

export interface PeersWorld {
  readonly env: ManualEnvironment;
  readonly network: FakeNet;
  node(port: number, uid: string, codec?: Codec): Promise<PeersNode>;
}

export function addressOf(port: number): Address {
  return `127.0.0.1:${port}`;
}

export function world(options: FakeNetOptions = {}): PeersWorld {
  const env = new ManualEnvironment();
  const network = new FakeNet(env, options);
  return { env, network, node: (port, uid, codec) => start(env, network, port, uid, codec ?? new Codec()) };
}

async function start(
  env: ManualEnvironment,
  network: FakeNet,
  port: number,
  uid: string,
  codec: Codec,
): Promise<PeersNode> {
  const node: PeersNode = {
    got: [],
    events: [],
    undelivered: [],
    failures: [],
    onMessage: () => {},
    peers: createPeers({
      environment: env,
      transport: network.transport(addressOf(port), uid),
      codec,
      uid,
      onUndeliverable: (_address, envelope, reason) => node.undelivered.push({ reason, envelope }),
      events: {
        connected: (peer) => node.events.push(`+${peer.uid}`),
        disconnected: (peer, clean, why) => node.events.push(`-${peer.uid} ${clean ? 'clean' : 'lost'}: ${why}`),
        dialFailed: (_address, failure) => node.failures.push(failure),
        message: (peer, envelope) => {
          node.got.push(envelope);
          node.onMessage(peer, envelope);
        },
        listenerLost: () => {},
      },
    }),
  };
  await node.peers.start();
  return node;
}
