/** What the job scheduler is told and what it answers. Plain data, so that every node can ask. */
import type { JobView } from './job.ts';
import { checkDefinition, isRefusal, type JobDefinition, parseId, type Refusal } from './job_definition.ts';

export type JobCommand =
  | { readonly kind: 'put'; readonly job: JobDefinition }
  | { readonly kind: 'get'; readonly id: string }
  | { readonly kind: 'list'; readonly after?: string }
  | { readonly kind: 'delete'; readonly id: string };

export type JobReply =
  | { readonly kind: 'job'; readonly change: 'created' | 'replaced' | 'unchanged' | 'none'; readonly job: JobView }
  | { readonly kind: 'page'; readonly jobs: readonly JobView[]; readonly total: number; readonly next: string | null }
  | { readonly kind: 'deleted'; readonly id: string }
  | { readonly kind: 'unknown'; readonly id: string }
  | { readonly kind: 'refused' | 'full'; readonly refusal: Refusal }
  /** The store does not work at present; whether a change was kept is not known. */
  | { readonly kind: 'unavailable'; readonly why: string };

/** Checks a command on the scheduler's side: whoever holds its ref may have sent anything. */
export function checkCommand(message: unknown): JobCommand | Refusal {
  const { kind, job, id, after } = (message ?? {}) as { kind?: unknown; job?: unknown; id?: unknown; after?: unknown };
  switch (kind) {
    case 'put': {
      const checked = checkDefinition(job);
      return isRefusal(checked) ? checked : { kind, job: checked };
    }
    case 'get':
    case 'delete': {
      const checked = parseId(id);
      return typeof checked === 'string' ? { kind, id: checked } : checked;
    }
    case 'list':
      return typeof after === 'string' ? { kind, after } : { kind };
    default:
      return { field: 'kind', rule: 'must be put, get, list or delete' };
  }
}
