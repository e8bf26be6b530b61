/**
 * Who may give a node jobs. Jobs make it call URLs, so beyond this machine it takes the bearer token; and on this machine a
 * page in a browser that comes from elsewhere is nobody, whatever name it has found for the loopback address.
 */
import type { Context } from 'hono';
import type { Problem } from '../src/http/answers.ts';
import { checkToken } from '../src/http/authorization.ts';
import { isLoopbackHost } from '../src/transport/address.ts';

export interface JobsGuardOptions {
  readonly token: string | undefined;
  /** True where only this machine reaches the node and no token was asked for. */
  readonly open: boolean;
}

export function jobsGuard({ token, open }: JobsGuardOptions): (context: Context) => Promise<Problem | undefined> {
  if (!open) return (context) => checkToken(context, token);
  return async (context) => {
    const origin = context.req.header('origin');
    if (origin !== undefined && !isLoopbackUrl(origin)) return foreign('Origin', 'a page of another site');
    return isLoopbackUrl(context.req.url) ? undefined : foreign('Host', 'a name that is not this machine');
  };
}

function isLoopbackUrl(url: string): boolean {
  return URL.canParse(url) && isLoopbackHost(new URL(url).hostname.replace(/^\[|\]$/g, ''));
}

function foreign(header: string, what: string): Problem {
  return {
    status: 403,
    code: 'foreign-page',
    message: `Without a token, /jobs is for programs on this machine; the ${header} header names ${what}.`,
    hint: 'Start the node with --token and send it, or call the loopback address.',
  };
}
