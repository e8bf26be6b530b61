/** The HTTP side of the job scheduler, the same on every node: each request is one ask to the one scheduler. */
import { type Context, Hono } from 'hono';
import { isProblem, type Problem, refuse, wrongMethod } from '../src/http/answers.ts';
import { readBody } from '../src/http/request_body.ts';
import { isRefusal, parseId, parseJob, type Refusal } from './job_definition.ts';
import type { JobCommand, JobReply } from './job_messages.ts';

export interface JobsApiOptions {
  /** Asks the scheduler; rejects when it cannot be reached in time. */
  readonly ask: (command: JobCommand) => Promise<JobReply>;
  /** Why this request is not allowed; undefined when it is. */
  readonly guard: (context: Context) => Promise<Problem | undefined>;
}

/** Routes `/jobs` and `/jobs/:id`. */
export function jobsApi(options: JobsApiOptions): Hono {
  const app = new Hono();
  app.use('/jobs/*', async (context, next) => {
    const problem = await options.guard(context);
    if (problem !== undefined) return refuse(context, problem);
    await next();
  });
  app.post('/jobs', async (context) => {
    const body = await readBody(context.req.raw);
    if (isProblem(body)) return refuse(context, body);
    const job = parseJob(parseJson(body));
    return isRefusal(job) ? badRequest(context, job) : forward(context, options, { kind: 'put', job });
  });
  app.get('/jobs', (context) => {
    const after = context.req.query('after');
    return forward(context, options, after === undefined ? { kind: 'list' } : { kind: 'list', after });
  });
  for (const [method, kind] of [['GET', 'get'], ['DELETE', 'delete']] as const) {
    app.on(method, '/jobs/:id', (context) => {
      const id = parseId(context.req.param('id'));
      return typeof id === 'string' ? forward(context, options, { kind, id }) : badRequest(context, id);
    });
  }
  for (const [path, allow] of [['/jobs', 'GET, POST'], ['/jobs/:id', 'GET, DELETE']] as const) {
    app.all(path, (context) => refuse(context, wrongMethod(context.req.method, context.req.path, allow)));
  }
  return app;
}

async function forward(context: Context, options: JobsApiOptions, command: JobCommand): Promise<Response> {
  let reply: JobReply;
  try {
    reply = await options.ask(command);
  } catch (error) {
    return refuse(context, {
      status: 503,
      code: 'no-scheduler',
      message: `The job scheduler did not answer: ${error instanceof Error ? error.message : String(error)}.`,
      hint: 'Ask again: posting the same job twice changes nothing.',
    });
  }
  switch (reply.kind) {
    case 'job':
      return context.json(reply.job, command.kind === 'put' ? 201 : 200);
    case 'page':
      return context.json({ jobs: reply.jobs, total: reply.total, next: reply.next }, 200);
    case 'deleted':
      return context.body(null, 204);
    case 'unknown':
      return refuse(context, {
        status: 404,
        code: 'unknown-job',
        message: `There is no job ${reply.id}.`,
        hint: 'GET /jobs lists them.',
      });
    case 'refused':
      return badRequest(context, reply.refusal);
    case 'full':
      return badRequest(context, reply.refusal, 409);
    case 'unavailable':
      return refuse(context, {
        status: 503,
        code: 'not-stored',
        message: `The job scheduler cannot use its store: ${reply.why}.`,
        hint: 'It tries again by itself. Ask again: posting the same job twice changes nothing.',
      });
    default:
      return reply satisfies never;
  }
}

function badRequest(context: Context, { field, rule }: Refusal, status: 400 | 409 | 413 = 400): Response {
  const message = `${field}: ${rule}`;
  const hint = 'A job is {"id","everyMs","url"} or {"id","at","url"}.';
  return context.json({ error: { code: 'bad-job', message, hint, field, rule } }, status);
}

/** Undefined, which no job is, for bytes that are no JSON. */
function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
