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
  /** A caller did what its token does not allow. */
  forbidden: 4110,
  /** A caller sent more than its grant allows. */
  tooFast: 4111,
  /** The other side reads too slowly, or has been silent for too long. */
  tooSlow: 4112,
  silent: 4113,
  /** The same caller has connected again. */
  replaced: 4114,
  /** This node, or this caller, ends. */
  goingAway: 4115,
} as const;
