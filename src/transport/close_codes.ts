/** Why a node closed a link of its own accord. The handshake has its own codes from 4400 on. */
export const closeCodes = {
  /** The peer already has a link that it uses. */
  duplicate: 4100,
  /** A newer link between the same two processes took its place. */
  superseded: 4101,
  /** A new process answers at the peer's address. */
  newIncarnation: 4102,
  malformedFrame: 4103,
  /** The sides did not agree to use the link in time, or data came before they did. */
  unsettled: 4104,
  /** The peer is not the one that was dialled, or is this node itself. */
  wrongPeer: 4105,
} as const;
