/** When a singleton task runs: a fixed period, or times of day in the notation of cron. Pure. */
import { OptionsError } from '../actor/options.ts';
import { limits } from '../limits.ts';

/**
 * `everyMs`: a grid of that period. `at`: five fields of cron (minute, hour, day of month, month, day of week) in UTC, each
 * `*`, a number, a range `a-b`, a step `…/n`, or a list of those.
 */
export type TaskSchedule = { readonly everyMs: number } | { readonly at: string };

export interface Schedule {
  /** The first due time after `wall` milliseconds; undefined when there is none within four years. */
  next(wall: number): number | undefined;
}

const family = 'TaskSchedule';
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const fields = [['minute', 0, 59], ['hour', 0, 23], ['day of month', 1, 31], ['month', 1, 12], [
  'day of week',
  0,
  7,
]] as const;

/** @throws OptionsError naming the field and the rule */
export function parseSchedule(schedule: TaskSchedule): Schedule {
  const { everyMs, at } = schedule as { everyMs?: unknown; at?: unknown };
  if ((everyMs === undefined) === (at === undefined)) {
    throw new OptionsError(family, 'everyMs', everyMs, 'must be given, or else `at`, and not both');
  }
  if (at !== undefined) return cron(at);
  if (typeof everyMs !== 'number' || !(everyMs >= 1 && everyMs <= limits.timerMs)) {
    throw new OptionsError(family, 'everyMs', everyMs, `must be a number of milliseconds from 1 to ${limits.timerMs}`);
  }
  return { next: (wall) => (Math.floor(wall / everyMs) + 1) * everyMs };
}

function cron(text: unknown): Schedule {
  const parts = typeof text === 'string' ? text.trim().split(/\s+/) : [];
  if (parts.length !== fields.length) throw new OptionsError(family, 'at', text, 'must be five fields of cron, in UTC');
  const [minutes, hours, days, months, weekdays] = parts.map((part, index) => fieldOf(part, index, text)) as [
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
    Set<number>,
  ];
  if (weekdays.has(7)) weekdays.add(0);
  const [, , day, , weekday] = parts;
  // As in cron: when both days are restricted, either of them will do.
  const either = day !== '*' && weekday !== '*';
  const matchesDay = (date: Date): boolean => {
    const byDay = days.has(date.getUTCDate());
    const byWeekday = weekdays.has(date.getUTCDay());
    return months.has(date.getUTCMonth() + 1) && (either ? byDay || byWeekday : byDay && byWeekday);
  };
  return {
    next: (wall) => {
      let time = (Math.floor(wall / minuteMs) + 1) * minuteMs;
      for (const end = wall + 4 * 366 * dayMs; time < end;) {
        const date = new Date(time);
        if (!matchesDay(date)) time = (Math.floor(time / dayMs) + 1) * dayMs;
        else if (hours.has(date.getUTCHours()) && minutes.has(date.getUTCMinutes())) return time;
        else time += minuteMs;
      }
      return undefined;
    },
  };
}

function fieldOf(part: string, index: number, whole: unknown): Set<number> {
  const [name, low, high] = fields[index]!;
  const values = new Set<number>();
  const refuse = (): never => {
    throw new OptionsError(
      family,
      'at',
      whole,
      `${name} '${part}' must be *, numbers from ${low} to ${high}, ranges, steps or lists`,
    );
  };
  for (const item of part.split(',')) {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(item);
    if (!match) return refuse();
    const from = match[1] === undefined ? low : Number(match[1]);
    const to = match[1] === undefined ? high : match[2] === undefined ? (match[3] ? high : from) : Number(match[2]);
    const step = match[3] === undefined ? 1 : Number(match[3]);
    if (from < low || to > high || from > to || step < 1) return refuse();
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return values;
}
