/** Supervision: what happens to an actor that failed. Decisions are pure. After Erlang/OTP's supervisors. */
import { checkOptions, OptionsError, type Rules, rules } from './options.ts';

/**
 * `restart`: a new instance takes over the mailbox. `resume`: the same instance goes on with the next message.
 * `stop`: the actor is stopped. `escalate`: its parent fails with the same error; at the top the actor is stopped.
 */
export type Directive = 'restart' | 'resume' | 'stop' | 'escalate';

/** The wait before a restart: `minMs`, doubling with each failure in a row up to `maxMs`, plus up to `jitter` of itself. */
export interface Backoff {
  readonly minMs: number;
  readonly maxMs: number;
  /** Fraction from 0 to 1; default 0.2. */
  readonly jitter?: number;
}

/** How failures of children are answered. All fields are optional. */
export interface SupervisorOptions {
  /** Chooses by the error; default: always `restart`. If it throws, the actor is stopped. */
  readonly decider?: (error: unknown) => Directive;
  /** Restarts allowed within `withinMs` for each child; the next failure stops it. Default 10; `Infinity` for no bound. */
  readonly maxRestarts?: number;
  /** Default 60 000. An actor that ran this long without failing also starts again at the smallest back-off. */
  readonly withinMs?: number;
  /** Default: restart at once. */
  readonly backoff?: Backoff;
}

const optionRules: Rules<SupervisorOptions> = {
  decider: rules.function,
  maxRestarts: rules.either(rules.integer(0), rules.oneOf(Infinity)),
  withinMs: rules.durationMs(1),
  backoff: rules.object,
};
const backoffRules: Rules<Backoff> = {
  minMs: rules.durationMs(0),
  maxMs: rules.durationMs(0),
  jitter: rules.number(0, 1),
};

/** How failures are answered. Immutable; one may serve many actors, the restart budget is each child's own. */
export class SupervisorStrategy {
  /** `all-for-one`: siblings share the fate of the one that failed. */
  readonly scope: 'one-for-one' | 'all-for-one';
  readonly decider: (error: unknown) => Directive;
  readonly maxRestarts: number;
  readonly withinMs: number;
  readonly backoff: Required<Backoff> | undefined;

  private constructor(scope: 'one-for-one' | 'all-for-one', options: SupervisorOptions) {
    checkOptions('SupervisorOptions', options, optionRules);
    this.scope = scope;
    this.decider = options.decider ?? (() => 'restart');
    this.maxRestarts = options.maxRestarts ?? 10;
    this.withinMs = options.withinMs ?? 60_000;
    this.backoff = options.backoff === undefined ? undefined : checkBackoff(options.backoff);
  }

  /** @throws OptionsError */
  static oneForOne(options: SupervisorOptions = {}): SupervisorStrategy {
    return new SupervisorStrategy('one-for-one', options);
  }

  /** @throws OptionsError */
  static allForOne(options: SupervisorOptions = {}): SupervisorStrategy {
    return new SupervisorStrategy('all-for-one', options);
  }
}

function checkBackoff(backoff: Backoff): Required<Backoff> {
  checkOptions('Backoff', backoff, backoffRules);
  const { minMs, maxMs, jitter = 0.2 } = backoff;
  if (typeof minMs !== 'number') throw new OptionsError('Backoff', 'minMs', minMs, 'must be given');
  if (typeof maxMs !== 'number' || maxMs < minMs) {
    throw new OptionsError('Backoff', 'maxMs', maxMs, `must be at least minMs (${minMs})`);
  }
  return { minMs, maxMs, jitter };
}

/** What is remembered about one child's failures. */
export interface RestartRecord {
  /** Monotonic times of its restarts within the window, oldest first. */
  readonly times: readonly number[];
  /** Restarts in a row without `withinMs` of health between. */
  readonly streak: number;
}

export const noRestarts: RestartRecord = { times: [], streak: 0 };

export interface Failure {
  readonly error: unknown;
  /** False when it failed while starting. */
  readonly started: boolean;
  /** It has no parent that could fail in its place. */
  readonly top: boolean;
  /** How long it had been running; 0 when it failed while starting. */
  readonly healthyMs: number;
}

export interface Verdict {
  readonly directive: Directive;
  readonly record: RestartRecord;
  /** Wait before the restart. */
  readonly delayMs: number;
  /** Why this is not what the decider chose, if it is not. */
  readonly why: string | undefined;
}

/** More restart times than this are never needed, whatever the bound. */
const maxTimes = 1_024;

/** Decides about a failure. `random` is in [0, 1). Pure apart from calling the strategy's decider. */
export function judge(
  strategy: SupervisorStrategy,
  record: RestartRecord,
  failure: Failure,
  now: number,
  random: number,
): Verdict {
  const { chosen, why } = choose(strategy, failure);
  const keep = (directive: Directive): Verdict => ({ directive, record, delayMs: 0, why });
  switch (chosen) {
    case 'resume':
    case 'stop':
    case 'escalate':
      return keep(chosen);
    case 'restart': {
      const times = record.times.filter((time) => now - time < strategy.withinMs);
      if (times.length >= strategy.maxRestarts) {
        const bound = `${strategy.maxRestarts} restarts within ${strategy.withinMs} ms are used up`;
        return { directive: 'stop', record, delayMs: 0, why: bound };
      }
      const streak = failure.healthyMs >= strategy.withinMs ? 0 : record.streak;
      const next = { times: [...times.slice(-maxTimes), now], streak: streak + 1 };
      return { directive: 'restart', record: next, delayMs: backoffDelay(strategy.backoff, streak, random), why };
    }
    default:
      return unknownDirective(chosen, record);
  }
}

function choose(strategy: SupervisorStrategy, failure: Failure): { chosen: Directive; why: string | undefined } {
  let chosen: Directive;
  try {
    chosen = strategy.decider(failure.error);
  } catch (error) {
    return { chosen: 'stop', why: `the decider threw ${String(error)}` };
  }
  if (chosen === 'resume' && !failure.started) {
    return { chosen: 'restart', why: 'an actor that has not started cannot resume' };
  }
  if (chosen === 'escalate' && failure.top) return { chosen: 'stop', why: 'there is nobody above to escalate to' };
  return { chosen, why: undefined };
}

function unknownDirective(directive: never, record: RestartRecord): Verdict {
  return { directive: 'stop', record, delayMs: 0, why: `the decider returned ${String(directive)}` };
}

function backoffDelay(backoff: Required<Backoff> | undefined, streak: number, random: number): number {
  if (backoff === undefined) return 0;
  const base = Math.min(backoff.maxMs, backoff.minMs * 2 ** Math.min(streak, 50));
  return Math.min(base * (1 + backoff.jitter * random), 2 ** 31 - 1);
}
