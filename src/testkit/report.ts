/** A failed run in readable form. */
import { describeFault } from './fault.ts';
import type { Plan, SimulationResult } from './simulate.ts';
import { formatEntry } from './trace.ts';

/** Seed, broken rule, fault list and the last `perNode` events of each node. Default 25. */
export function formatReport(result: SimulationResult, perNode = 25): string {
  const { plan, failure } = result;
  const lines: string[] = [];
  const outcome = failure === undefined
    ? 'passed'
    : `FAILED at ${(failure.at / 1000).toFixed(3)} s: ${failure.message}`;
  lines.push(`seed ${plan.seed}, profile ${plan.profile.name}, program ${result.program}: ${outcome}`);
  lines.push(`  hosts: ${plan.hosts.map((host) => `${host.name}=${host.address}`).join(' ')}`);
  lines.push(`  hash ${result.hash}, ${result.steps} steps, ${(result.virtualMs / 1000).toFixed(1)} virtual seconds`);
  if (failure === undefined) return lines.join('\n');
  lines.push(
    `  replay: npm run sim -- --seed ${plan.seed} --profile ${plan.profile.name} --program ${result.program}` +
      `${chosenLength(plan)}${chosenFaults(plan)}`,
  );
  lines.push(`  faults (${plan.faults.length}), over at ${(plan.faultsEnd / 1000).toFixed(3)}s:`);
  for (const fault of plan.faults) lines.push(`    ${describeFault(fault)}`);
  for (const name of ['-', ...plan.hosts.map((host) => host.name)]) {
    const entries = result.trace.filter((entry) => entry.node === name).slice(-perNode);
    if (entries.length === 0) continue;
    lines.push(`  last events of ${name === '-' ? 'the world' : name}:`);
    for (const entry of entries) lines.push(`    ${formatEntry(entry)}`);
  }
  return lines.join('\n');
}

/** The option for a fault phase of another length than the profile's own. */
function chosenLength({ profile, faultsEnd }: Plan): string {
  const faultMs = faultsEnd - profile.settleMs;
  return faultMs === profile.faultMs ? '' : ` --seconds ${faultMs / 1_000}`;
}

/** The option that replays a shrunk run; empty when nothing was left out. */
function chosenFaults(plan: Plan): string {
  if (plan.faults.length === plan.drawn.length) return '';
  const indexes = plan.faults.map((fault) => plan.drawn.indexOf(fault));
  return ` --faults ${indexes.length === 0 ? 'none' : indexes.join(',')}`;
}
