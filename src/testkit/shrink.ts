/** Delta debugging (Zeller and Hildebrandt's ddmin) over the fault list of a failing run. */
import type { Fault } from './fault.ts';
import type { Program } from './program.ts';
import { type Plan, runPlan, type SimulationResult } from './simulate.ts';

/** What came of shrinking a failing run. */
export interface ShrinkResult {
  /** The shortest failing run that was found. */
  readonly result: SimulationResult;
  readonly runs: number;
}

/** Looks for a shorter fault list that breaks the same rule, in at most `maxRuns` runs (default 200). */
export async function shrink(failing: SimulationResult, program: Program, maxRuns = 200): Promise<ShrinkResult> {
  const rule = failing.failure?.rule;
  if (rule === undefined) throw new RangeError('shrink: the run did not fail');
  let best = failing;
  let runs = 0;
  const attempt = async (faults: readonly Fault[]): Promise<boolean> => {
    if (runs >= maxRuns) return false;
    runs++;
    const plan: Plan = { ...failing.plan, faults };
    const result = await runPlan(plan, program);
    if (result.failure?.rule !== rule) return false;
    best = result;
    return true;
  };
  let pieces = 2;
  if (await attempt([])) return { result: best, runs };
  while (best.plan.faults.length > 1 && runs < maxRuns) {
    const size = Math.ceil(best.plan.faults.length / pieces);
    if (await removeOnePiece(best.plan.faults, size, attempt)) {
      pieces = Math.max(2, pieces - 1);
    } else if (size === 1) {
      break;
    } else {
      pieces = Math.min(best.plan.faults.length, pieces * 2);
    }
  }
  return { result: best, runs };
}

async function removeOnePiece(
  faults: readonly Fault[],
  size: number,
  attempt: (faults: readonly Fault[]) => Promise<boolean>,
): Promise<boolean> {
  for (let start = 0; start < faults.length; start += size) {
    const rest = [...faults.slice(0, start), ...faults.slice(start + size)];
    if (rest.length < faults.length && await attempt(rest)) return true;
  }
  return false;
}
