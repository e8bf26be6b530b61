/** `?format=`: what an answer looks like, where there is a choice. */
import type { Context } from 'hono';
import { type Problem, refuse } from './answers.ts';
import type { MembersReport, MetricSample, SingletonReport } from './inspection.ts';
import { textTable } from './text_table.ts';

/**
 * What the request asks for; the first of `formats` when it says nothing. A problem for anything else, so that a typo is not
 * answered with something that a program cannot read.
 */
export function formatOf<F extends string>(context: Context, formats: readonly [F, ...F[]]): F | Problem {
  const asked = context.req.query('format');
  if (asked === undefined) return formats[0];
  const format = formats.find((one) => one === asked);
  if (format !== undefined) return format;
  return {
    status: 400,
    code: 'bad-request',
    message: `format must be ${formats.join(' or ')} here.`,
    hint: `Leave it out for ${formats[0]}.`,
  };
}

/** JSON, or with `?format=text` what `text` makes of the same. */
export function answer(context: Context, body: object, text?: () => string): Response {
  const format = formatOf(context, text === undefined ? ['json'] : ['json', 'text']);
  if (typeof format === 'object') return refuse(context, format);
  const headers = { 'cache-control': 'no-store' };
  if (format === 'json') return context.json(body, 200, headers);
  return context.text(text!(), 200, headers);
}

export function membersText({ self, leader, members }: MembersReport): string {
  const rows = members.map(({ address, status, upNumber, reachable, roles, runtime, appVersion }) => [
    address,
    status,
    upNumber,
    reachable ? 'yes' : 'no',
    [...(address === leader ? ['leader'] : []), ...(address === self ? ['asked'] : [])].join(','),
    roles.join(','),
    runtime,
    appVersion,
  ]);
  return textTable(['ADDRESS', 'STATUS', 'AGE', 'REACHABLE', 'IS', 'ROLES', 'RUNTIME', 'VERSION'], rows);
}

export function singletonsText(singletons: readonly SingletonReport[]): string {
  const rows = singletons.map(({ name, host, state, epoch, role, buffered, problem }) => {
    return [name, host, state, epoch, role, buffered, problem];
  });
  return textTable(['NAME', 'HOST', 'STATE HERE', 'EPOCH', 'ROLE', 'BUFFERED', 'PROBLEM'], rows);
}

/** The same samples as in the exposition, for what reads JSON. JSON has no infinity: such a value is `null`. */
export function metricsJson(samples: Iterable<MetricSample>): object {
  return {
    metrics: [...samples].map(({ name, type, help, labels = {}, value }) => ({ name, type, help, labels, value })),
  };
}
