/** The one shape in which everything that goes wrong is told: `{ error: { code, message, hint } }`. */
import type { Context } from 'hono';

export interface Problem {
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 500 | 503;
  /** Stable, for programs. */
  readonly code: string;
  /** For people: what is wrong. */
  readonly message: string;
  /** For people: what to do. */
  readonly hint: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function isProblem(value: object): value is Problem {
  return 'status' in value && 'code' in value && 'hint' in value;
}

export function refuse(context: Context, problem: Problem): Response {
  const { status, code, message, hint, headers } = problem;
  return context.json({ error: { code, message, hint } }, status, { 'cache-control': 'no-store', ...headers });
}

export function unknownPath(method: string, path: string): Problem {
  return {
    status: 404,
    code: 'not-found',
    message: `There is nothing at ${method} ${path}.`,
    hint:
      'See /alive, /ready, /cluster/members, /cluster/singletons, /cluster/events, /metrics, or / for the status page.',
  };
}

export function wrongMethod(method: string, path: string, allow: string): Problem {
  return {
    status: 405,
    code: 'method-not-allowed',
    message: `${path} does not take ${method}.`,
    hint: `Use ${allow}.`,
    headers: { allow },
  };
}

export const internalProblem: Problem = {
  status: 500,
  code: 'internal',
  message: 'The node failed to answer.',
  hint: 'The log of the node has the error.',
};
