/** Bearer tokens, compared in a time that says nothing about how much of a guess was right. */
import type { Context } from 'hono';
import { limits } from '../limits.ts';
import type { Problem } from './answers.ts';

const encoder = new TextEncoder();

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text)));
}

/** Compares digests, which have one length whatever the texts are. */
export async function sameToken(a: string, b: string): Promise<boolean> {
  const [left, right] = await Promise.all([digest(a), digest(b)]);
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0);
  return difference === 0;
}

export type Authorization = 'granted' | 'missing' | 'wrong' | 'not-configured';

export async function authorize(header: string | undefined, token: string | undefined): Promise<Authorization> {
  if (token === undefined || token === '') return 'not-configured';
  const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];
  if (given === undefined || given.length > limits.httpTokenChars) return 'missing';
  return await sameToken(given, token) ? 'granted' : 'wrong';
}

/** Undefined when the request may go on. */
export async function checkToken(context: Context, token: string | undefined): Promise<Problem | undefined> {
  const authorization = await authorize(context.req.header('authorization'), token);
  switch (authorization) {
    case 'granted':
      return undefined;
    case 'not-configured':
      return {
        status: 403,
        code: 'operations-off',
        message: 'This node has no operations token, so it takes no operations.',
        hint: 'Start the node with a token to switch them on.',
      };
    case 'missing':
    case 'wrong':
      return {
        status: 401,
        code: 'unauthorized',
        message: authorization === 'missing' ? 'This needs a bearer token.' : 'The bearer token is wrong.',
        hint: 'Send the header `authorization: Bearer TOKEN` with the token of this node.',
        headers: { 'www-authenticate': 'Bearer' },
      };
    default:
      return authorization satisfies never;
  }
}
