/**
 * The HTTP side of a node, as an ordinary Hono app: seeding, health, inspection, events, operations, metrics and a status
 * page. It can be mounted in an app of yours (`app.route('/node', createApp(inspection))`), or yours in it.
 */
import { type Context, Hono } from 'hono';
import { LineBudget } from '../actor/line_budget.ts';
import { limits } from '../limits.ts';
import { internalProblem, isProblem, type Problem, refuse, unknownPath, wrongMethod } from './answers.ts';
import { authorize, checkToken } from './authorization.ts';
import { EventFeed } from './event_feed.ts';
import { exposition, expositionType } from './exposition.ts';
import { answer, formatOf, membersText, metricsJson, singletonsText } from './formats.ts';
import type { ClusterInspection } from './inspection.ts';
import { listSamples } from './metrics.ts';
import { addOperations, noSuchSingleton, operationPaths } from './operations.ts';
import { pageHeaders, pageMarkup } from './page/page.ts';

const guardedReads = [
  '/cluster/members',
  '/cluster/leader',
  '/cluster/singletons',
  '/cluster/singletons/:name',
  '/cluster/events',
  '/metrics',
];
const openReads = ['/', '/alive', '/ready', '/cluster/seed'];

/** The routes of one node. Subscribes to its events once, for as long as the node lives. */
export function createApp(inspection: ClusterInspection): Hono {
  const app = new Hono();
  const lines = new LineBudget(inspection.environment);
  const feed = new EventFeed(inspection.environment, inspection.seed().uid);
  inspection.subscribe((event) => feed.publish(event));

  app.onError((error, context) => {
    const more = lines.take();
    if (more !== undefined) {
      const path = context.req.path.slice(0, limits.urlChars);
      inspection.environment.log.error('a request failed', { path, error: error.stack ?? String(error), ...more });
    }
    return refuse(context, internalProblem);
  });
  addGuard(app, inspection);
  addHealth(app, inspection);
  addSeed(app, inspection);
  addReports(app, inspection);
  app.get('/cluster/events', (context) => {
    const format = formatOf(context, ['stream', 'json']);
    if (typeof format === 'object') return refuse(context, format);
    const replay = replayCount(context.req.query('replay'), format === 'json' ? limits.httpEventsKept : 0);
    if (replay === undefined) return refuse(context, badReplay);
    if (format === 'json') return fresh(context, { events: feed.latest(replay) });
    const stream = feed.open({
      lastEventId: context.req.header('last-event-id'),
      replay,
      signal: context.req.raw.signal,
    });
    return isProblem(stream) ? refuse(context, stream) : stream;
  });
  app.get('/metrics', (context) => {
    const format = formatOf(context, ['text', 'json']);
    if (typeof format === 'object') return refuse(context, format);
    const samples = listSamples(inspection, feed);
    if (format === 'json') return fresh(context, metricsJson(samples));
    return context.body(exposition(samples), 200, { 'content-type': expositionType });
  });
  app.get('/', async (context) => context.body(pageMarkup, 200, await pageHeaders()));
  addOperations(app, inspection);
  addRefusals(app);
  return app;
}

/** With `reads: 'token'`, what names members or messages needs the token. */
function addGuard(app: Hono, inspection: ClusterInspection): void {
  if (inspection.reads !== 'token') return;
  for (const path of guardedReads) {
    app.get(path, async (context, next) => {
      const problem = await checkToken(context, inspection.token);
      if (problem !== undefined) return refuse(context, problem);
      await next();
    });
  }
}

async function seesDetails(context: Context, inspection: ClusterInspection): Promise<boolean> {
  if (inspection.reads !== 'token') return true;
  return await authorize(context.req.header('authorization'), inspection.token) === 'granted';
}

function addHealth(app: Hono, inspection: ClusterInspection): void {
  app.get('/alive', (context) => fresh(context, { alive: true }));
  app.get('/ready', async (context) => {
    const { ready, reasons } = inspection.readiness();
    const answer = { ready, reasons: await seesDetails(context, inspection) ? reasons : [] };
    return fresh(context, answer, ready ? 200 : 503);
  });
}

function addSeed(app: Hono, inspection: ClusterInspection): void {
  app.get('/cluster/seed', async (context) => {
    const seed = inspection.seed();
    const details = await seesDetails(context, inspection);
    return fresh(context, {
      ...seed,
      members: details ? seed.members : [],
      timing: describeMargins(inspection.timing()),
    });
  });
}

/** The four durations by the names that the guarantees use, and all others. */
function describeMargins(timing: Readonly<Record<string, number>>): Readonly<Record<string, number | undefined>> {
  return {
    M: timing['removalMarginMs'],
    G: timing['gateWindowMs'],
    stopBound: timing['stopBoundMs'],
    stableAfter: timing['stableAfterMs'],
    ...timing,
  };
}

function addReports(app: Hono, inspection: ClusterInspection): void {
  app.get('/cluster/members', (context) => {
    const report = inspection.members();
    return answer(context, report, () => membersText(report));
  });
  app.get('/cluster/leader', (context) => {
    const { leader } = inspection.members();
    return answer(context, { leader }, () => leader === null ? '' : `${leader}\n`);
  });
  app.get('/cluster/singletons', (context) => {
    const singletons = inspection.singletons();
    return answer(context, { singletons }, () => singletonsText(singletons));
  });
  app.get('/cluster/singletons/:name', (context) => {
    const name = context.req.param('name');
    const detail = inspection.singleton(name);
    return detail === undefined ? refuse(context, noSuchSingleton(name)) : answer(context, detail);
  });
}

function fresh(context: Context, body: object, status: 200 | 503 = 200): Response {
  return context.json(body, status, { 'cache-control': 'no-store' });
}

const badReplay: Problem = {
  status: 400,
  code: 'bad-request',
  message: 'replay must be a whole number from 0 to 999999.',
  hint:
    'It is how many of the latest events come first, such as ?replay=100; without it none, or with ?format=json all.',
};

/** Undefined for what is no number. */
function replayCount(query: string | undefined, without: number): number | undefined {
  if (query === undefined) return without;
  return /^\d{1,6}$/.test(query) ? Math.min(Number(query), limits.httpEventsKept) : undefined;
}

/** Other methods on these paths, and everything else below `/cluster`, also where this app is mounted in another one. */
function addRefusals(app: Hono): void {
  for (const path of [...openReads, ...guardedReads]) {
    if (path === '/') continue;
    app.all(path, (context) => refuse(context, wrongMethod(context.req.method, context.req.path, 'GET')));
  }
  for (const path of operationPaths) {
    app.all(path, (context) => refuse(context, wrongMethod(context.req.method, context.req.path, 'POST')));
  }
  app.all('/cluster/*', (context) => refuse(context, unknownPath(context.req.method, context.req.path)));
  app.notFound((context) => refuse(context, unknownPath(context.req.method, context.req.path)));
}
