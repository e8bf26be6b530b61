/** Numbers that both sides of any connection know. */

/** Grows when nodes of two releases could not understand each other. */
export const protocolVersion = 1;

export const nonceBytes = 32;
export const macBytes = 32;

/** With frame integrity: what each frame is longer by. */
export const sealBytes = 16;

/**
 * First byte of a frame of the callers' handshake; those of the nodes' have 1 and 2. The `sealing` ones are hellos that ask
 * for frame integrity.
 */
export const helloTags = { proof: 2, caller: 3, node: 4, sealingCaller: 5, sealingNode: 6 } as const;

/** Close code of a connection whose owner failed on a frame. */
export const ownerFailedCode = 4501;

/** Where callers connect. */
export const callerPath = '/cluster/callers';
export const callerSubprotocol: string = `singlet.callers.v${protocolVersion}`;
