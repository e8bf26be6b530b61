/** Puts a node on its peers: they need somebody to report to before the node can know its address. */
import type { Address } from '../transport/contract.ts';
import type { Peers, PeersEvents } from '../transport/peers_contract.ts';
import { ClusterNode } from './node.ts';
import type { NodeSettings } from './node_context.ts';

/** Peers that are not listening yet. */
export interface StartablePeers extends Peers {
  start(): Promise<Address>;
}

/**
 * Starts listening and makes the node. It looks for its cluster once `start()` or `join()` is called on it. The owner stops
 * the peers, last of all, after the node has ended and its actors have stopped.
 */
export async function createNode(
  settings: NodeSettings,
  makePeers: (events: PeersEvents) => StartablePeers,
): Promise<ClusterNode> {
  const made: { node?: ClusterNode } = {};
  let lost: string | undefined;
  const peers = makePeers({
    connected: (peer) => made.node?.events.connected(peer),
    disconnected: (peer, clean, why) => made.node?.events.disconnected(peer, clean, why),
    dialFailed: (address, failure) => made.node?.events.dialFailed(address, failure),
    message: (peer, envelope, bytes) => made.node?.events.message(peer, envelope, bytes),
    listenerLost: (why) => {
      lost = why;
      made.node?.events.listenerLost(why);
    },
  });
  await peers.start();
  try {
    const node = new ClusterNode(settings, peers);
    made.node = node;
    if (lost !== undefined) node.events.listenerLost(lost);
    return node;
  } catch (error) {
    await peers.stop();
    throw error;
  }
}
