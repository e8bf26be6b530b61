/** Turns what a runtime throws on a failed bind into a `ListenError`. */
import { type ListenCause, ListenError } from '../../src/transport/errors.ts';

export function listenFailure(host: string, port: number, error: unknown): ListenError {
  if (error instanceof ListenError) return error;
  const { code, name, message } = error as { code?: string; name?: string; message?: string };
  return new ListenError(host, port, causeOf(code ?? '', name ?? ''), message ?? String(error));
}

function causeOf(code: string, name: string): ListenCause {
  if (code === 'EADDRINUSE' || name === 'AddrInUse') return 'port-in-use';
  if (code === 'EACCES' || code === 'EPERM' || name === 'PermissionDenied' || name === 'NotCapable') {
    return 'permission';
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || name === 'AddrNotAvailable') return 'no-such-address';
  return 'other';
}
