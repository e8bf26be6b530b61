/** The job table as plain rows for a journal, and as bytes for a warm hand-over. */
import { limits } from '../src/limits.ts';
import type { Job, KeptJob, Lane } from './job.ts';
import { checkDefinition, isRefusal } from './job_definition.ts';
import type { JobTable } from './job_table.ts';

const formatVersion = 1;

/** One job. In a journal the first field may be the id alone: the definition is the one written before. */
export type Row = readonly [
  definition: unknown,
  nextDueAt: number | null,
  runs: number,
  failures: number,
  skipped: number,
  lastStatus: number | null,
  lastError: string | null,
  lastDueAt: number | null,
  lane: Lane,
  waitingDueAt: number | null,
  repeatDueAt: number | null,
];

export function encodeRow(job: Readonly<Job>): Row {
  return [
    job.definition,
    job.nextDueAt ?? null,
    job.runs,
    job.failures,
    job.skipped,
    job.lastStatus ?? null,
    job.lastError ?? null,
    job.lastDueAt ?? null,
    job.lane,
    job.waitingDueAt ?? null,
    job.repeatDueAt ?? null,
  ];
}

/** As `encodeRow`; a run that is under way counts as one whose end is not known. */
export function encodeOpenRow(job: Readonly<Job>): Row {
  return encodeRow(job.running ? { ...job, repeatDueAt: job.lastDueAt } : job);
}

/** Null for an empty table. */
export function encodeTable(table: JobTable): Uint8Array | null {
  if (table.size === 0) return null;
  const rows = Array.from(table.jobs(), encodeRow);
  return new TextEncoder().encode(JSON.stringify({ version: formatVersion, rows }));
}

/** Puts the jobs of a predecessor into `table`. Throws, and leaves the table as it was, when the bytes are not such a table. */
export function decodeTable(state: Uint8Array, table: JobTable, now: number): void {
  const decoded = JSON.parse(new TextDecoder().decode(state)) as { version?: unknown; rows?: unknown } | null;
  if (decoded?.version !== formatVersion || !Array.isArray(decoded.rows)) {
    throw new Error(`the handed-over job table is not of format ${formatVersion}`);
  }
  if (decoded.rows.length > limits.jobs) {
    throw new Error(`the handed-over job table holds more than ${limits.jobs} jobs`);
  }
  table.adopt(decoded.rows.map(decodeRow), now);
}

/** @throws Error when it is no such row */
export function decodeRow(row: unknown, index: number): KeptJob {
  if (!Array.isArray(row)) throw new Error(`row ${index} of the job table is not a list`);
  const [definition, nextDueAt, runs, failures, skipped, lastStatus, lastError, lastDueAt, lane, waitingDueAt] = row;
  // Rows of an earlier version have no such field.
  const repeatDueAt = row[10] ?? null;
  const checked = checkDefinition(definition);
  if (isRefusal(checked)) {
    throw new Error(`row ${index} of the job table: ${checked.field} ${checked.rule}`);
  }
  return {
    id: checked.id,
    definition: checked,
    nextDueAt: optionalNumber(nextDueAt, index),
    runs: count(runs, index),
    failures: count(failures, index),
    skipped: count(skipped, index),
    lastStatus: optionalNumber(lastStatus, index),
    lastError: typeof lastError === 'string' ? lastError : undefined,
    lastDueAt: optionalNumber(lastDueAt, index),
    lane: lane === 'good' || lane === 'slow' ? lane : 'new',
    waitingDueAt: optionalNumber(waitingDueAt, index),
    repeatDueAt: optionalNumber(repeatDueAt, index),
  };
}

function optionalNumber(value: unknown, index: number): number | undefined {
  if (value === null) return undefined;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`row ${index} of the job table holds something that is not a number`);
}

function count(value: unknown, index: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new Error(`row ${index} of the job table holds a count that is none`);
}
