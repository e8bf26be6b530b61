/**
 * An attempt to become host has a nonce: who makes it, and its number there. An attempt that was given up never starts, so
 * that its nonce says for good that what it was offered was not used.
 */
import { limits } from '../limits.ts';

export function attemptNonce(uid: string, attempt: number): string {
  return `${uid}/${attempt}`;
}

/** The uid of the process that makes, or made, the attempt. */
export function attempterOf(nonce: string): string {
  return nonce.slice(0, nonce.lastIndexOf('/'));
}

/** Attempts known to be given up, the latest last; the oldest are forgotten. */
export function withGivenUp(known: readonly string[], more: readonly string[]): readonly string[] {
  const fresh = more.filter((nonce) => !known.includes(nonce));
  return fresh.length === 0 ? known : [...known, ...fresh].slice(-limits.attemptsGivenUp);
}
