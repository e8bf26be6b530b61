/** What an operator may do: each needs the bearer token, is logged, and answers before the node is out of reach. */
import type { Context, Hono } from 'hono';
import { isProblem, type Problem, refuse } from './answers.ts';
import { checkToken } from './authorization.ts';
import type { ClusterInspection } from './inspection.ts';
import { checkAddress, readFields } from './request_body.ts';

export const operationPaths = [
  '/cluster/leave',
  '/cluster/down',
  '/cluster/singletons/:name/move',
  '/cluster/rebalance',
  '/cluster/prepare-shutdown',
  '/cluster/cancel-shutdown',
];

type Operation = (context: Context, inspection: ClusterInspection) => Promise<Response>;

const operations: readonly Operation[] = [leave, down, move, rebalance, prepareShutdown, cancelShutdown];

export function addOperations(app: Hono, inspection: ClusterInspection): void {
  operationPaths.forEach((path, index) => {
    const operation = operations[index];
    if (operation === undefined) return;
    app.post(path, async (context) => {
      const problem = await checkToken(context, inspection.token);
      return problem === undefined ? operation(context, inspection) : refuse(context, problem);
    });
  });
}

export function noSuchSingleton(name: string): Problem {
  return {
    status: 404,
    code: 'unknown-singleton',
    message: `This node knows no singleton named ${JSON.stringify(name)}.`,
    hint: 'GET /cluster/singletons lists those it knows.',
  };
}

/** Answers 202 at once: the hand-overs take a while, and at their end nobody listens here any more. */
async function leave(context: Context, inspection: ClusterInspection): Promise<Response> {
  const body = await readFields(context.req.raw, []);
  if (isProblem(body)) return refuse(context, body);
  const { self } = inspection.members();
  inspection.environment.log.info('an operator makes this node leave', { address: self });
  inspection.leave().catch((error) => {
    inspection.environment.log.error('leaving failed', { error: String(error) });
  });
  return context.json({ leaving: self }, 202);
}

async function down(context: Context, inspection: ClusterInspection): Promise<Response> {
  const body = await readFields(context.req.raw, ['address']);
  if (isProblem(body)) return refuse(context, body);
  const { address } = body.fields;
  const problem = checkAddress('address', address);
  if (problem !== undefined || address === undefined) return refuse(context, problem ?? noSuchMember(''));
  inspection.environment.log.warn('an operator downs a member', { address });
  const outcome = inspection.down(address);
  switch (outcome) {
    case 'downed':
      return context.json({ downed: address });
    case 'unknown':
      return refuse(context, noSuchMember(address));
    case 'refused':
      return refuse(context, {
        status: 409,
        code: 'operation-refused',
        message:
          `${address} is not downed from here: a lease decides about splits, and that member might be granted it.`,
        hint:
          'Make it leave, stop its process, or down it on the node itself. Cut off, it is out once the lease has decided.',
      });
    default:
      return outcome satisfies never;
  }
}

function noSuchMember(address: string): Problem {
  return {
    status: 404,
    code: 'unknown-member',
    message: `There is no member ${JSON.stringify(address)}.`,
    hint: 'GET /cluster/members lists them.',
  };
}

async function move(context: Context, inspection: ClusterInspection): Promise<Response> {
  const name = context.req.param('name') ?? '';
  const body = await readFields(context.req.raw, ['to']);
  if (isProblem(body)) return refuse(context, body);
  const { to } = body.fields;
  const problem = to === undefined ? undefined : checkAddress('to', to);
  if (problem !== undefined) return refuse(context, problem);
  inspection.environment.log.info('an operator moves a singleton', { name, to: to ?? 'the next eligible member' });
  const outcome = await inspection.move(name, to);
  switch (outcome.kind) {
    case 'moved':
      return context.json({ singleton: name, from: outcome.from, to: outcome.to });
    case 'unknown-singleton':
      return refuse(context, noSuchSingleton(name));
    case 'refused':
      return refuse(context, { status: 409, code: 'move-refused', message: outcome.message, hint: outcome.hint });
    default:
      return outcome satisfies never;
  }
}

async function rebalance(context: Context, inspection: ClusterInspection): Promise<Response> {
  const body = await readFields(context.req.raw, []);
  if (isProblem(body)) return refuse(context, body);
  inspection.environment.log.info('an operator rebalances the spread singletons');
  const outcome = await inspection.rebalance();
  return outcome.kind === 'moved' ? context.json({ moves: outcome.moves }) : refused(context, outcome);
}

async function prepareShutdown(context: Context, inspection: ClusterInspection): Promise<Response> {
  const body = await readFields(context.req.raw, []);
  if (isProblem(body)) return refuse(context, body);
  inspection.environment.log.warn('an operator prepares the shutdown of the whole cluster');
  const outcome = await inspection.prepareShutdown();
  return outcome.kind === 'prepared' ? context.json({ prepared: outcome.members }) : refused(context, outcome);
}

async function cancelShutdown(context: Context, inspection: ClusterInspection): Promise<Response> {
  const body = await readFields(context.req.raw, []);
  if (isProblem(body)) return refuse(context, body);
  inspection.environment.log.warn('an operator calls the shutdown of the whole cluster off');
  return context.json({ cancelled: inspection.cancelShutdown() });
}

function refused(context: Context, { message, hint }: { readonly message: string; readonly hint: string }): Response {
  return refuse(context, { status: 409, code: 'operation-refused', message, hint });
}
