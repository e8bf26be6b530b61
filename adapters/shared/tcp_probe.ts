/** Asks over plain TCP whether anything accepts connections; `node:net` exists on Bun, Deno and Node. */
import { connect } from 'node:net';
import type { Cancel } from '../../src/actor/environment.ts';
import type { ProbeOutcome } from '../../src/transport/contract.ts';

export function probeTcp(host: string, port: number, timeoutMs: number, done: (outcome: ProbeOutcome) => void): Cancel {
  let settled = false;
  const socket = connect({ host, port });
  const timer = setTimeout(() => settle('timeout'), timeoutMs);
  function settle(outcome: ProbeOutcome | undefined): void {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    socket.destroy();
    if (outcome !== undefined) done(outcome);
  }
  socket.on('connect', () => {
    // A connect to a free port of the ephemeral range can meet itself (TCP simultaneous open): nobody listens there.
    const self = socket.localPort === socket.remotePort && socket.localAddress === socket.remoteAddress;
    settle(self ? 'refused' : 'open');
  });
  // Stays attached after the end: a late error without a listener would end the process.
  socket.on('error', (error: Error & { code?: string }) => settle(outcomeOf(error)));
  socket.on('close', () => settle('other'));
  return () => settle(undefined);
}

function outcomeOf(error: Error & { code?: string }): ProbeOutcome {
  const codes = [error.code, ...innerErrors(error).map((inner) => inner.code)];
  if (codes.includes('ECONNREFUSED')) return 'refused';
  return codes.includes('ETIMEDOUT') ? 'timeout' : 'other';
}

/** Names with several addresses fail with one error per address. */
function innerErrors(error: unknown): readonly { code?: string }[] {
  return error instanceof AggregateError ? error.errors as { code?: string }[] : [];
}
