/** `singlet sim`: the simulator that checks the promises, on the user's own machine. */
import {
  formatEntry,
  formatReport,
  profileNamed,
  profileNames,
  type Program,
  programNamed,
  programNames,
  shrink,
  simulate,
  type SimulationResult,
} from '../src/testkit/mod.ts';
import { type CommandContext, flag } from './context.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';

interface Choice {
  readonly first: number;
  readonly last: number;
  readonly endsAt: number;
  readonly profile: string | undefined;
  readonly program: Program;
  readonly nodes: number | undefined;
  readonly until: number | undefined;
  readonly keep: readonly number[] | undefined;
  readonly hashes: boolean;
  readonly shrinks: boolean;
  readonly verbose: boolean;
}

/** What a report tells people to type: the tool, or in a clone of the repository its script. */
const inClone = import.meta.url.startsWith('file:') && import.meta.url.endsWith('.ts');

export async function sim(context: CommandContext): Promise<ExitCode> {
  const choice = readChoice(context);
  const started = context.now();
  const failed: number[] = [];
  const firstFailure = flag<boolean>(context, 'first-failure') === true;
  let runs = 0;
  let steps = 0;
  let slowest = 0;
  for (let seed = choice.first; seed <= choice.last; seed += 1) {
    if (context.now() >= choice.endsAt || context.interrupted.aborted) break;
    const of = choice.last === Number.MAX_SAFE_INTEGER ? '' : ` of ${choice.last}`;
    // On a terminal only: a log with a line for each run helps nobody.
    if (context.terminal.watched) context.terminal.progress(`seed ${seed}${of}, ${failed.length} failed`);
    const result = await simulate(optionsFor(context, choice, seed));
    runs += 1;
    steps += result.steps;
    slowest = Math.max(slowest, result.settledAfterMs ?? 0);
    if (result.failure !== undefined) failed.push(seed);
    await print(context, choice, result);
    if (firstFailure && failed.length > 0) break;
    await context.pause(0);
  }
  const seconds = (context.now() - started) / 1_000;
  const list = failed.length > 0 ? ` (seeds ${failed.join(', ')})` : '';
  if (context.json) context.terminal.out(JSON.stringify({ runs, failed, seconds }));
  else if (!choice.hashes) {
    const range = `seeds ${choice.first}..${choice.first + runs - 1} of ${choice.program.name}`;
    context.terminal.out(
      `${range}: ${runs} runs, ${failed.length} failed${list}; ${Math.round(steps / seconds)} steps/s, ` +
        `slowest to settle ${Math.round(slowest)} ms, ${seconds.toFixed(1)} s`,
    );
  }
  return failed.length > 0 ? exitCodes.notAsExpected : exitCodes.done;
}

function readChoice(context: CommandContext): Choice {
  const minutes = flag<number>(context, 'minutes');
  const [first, last] = seedsOf(context, minutes);
  const seconds = flag<number>(context, 'seconds');
  const profile = flag<string>(context, 'profile');
  if (profile !== undefined) known('profile', () => profileNamed(profile));
  const program = flag<string>(context, 'program') ?? programNames()[0] ?? '';
  return {
    first,
    last,
    endsAt: minutes === undefined ? Infinity : context.now() + minutes * 60_000,
    profile,
    program: known('program', () => programNamed(program)),
    nodes: flag<number>(context, 'nodes'),
    until: seconds === undefined ? undefined : seconds * 1_000,
    keep: faultsOf(flag<string>(context, 'faults')),
    hashes: flag<boolean>(context, 'hashes') === true,
    shrinks: flag<boolean>(context, 'no-shrink') !== true,
    verbose: flag<boolean>(context, 'verbose') === true,
  };
}

function seedsOf(context: CommandContext, minutes: number | undefined): readonly [number, number] {
  const seed = flag<number>(context, 'seed');
  const seeds = flag<string>(context, 'seeds');
  if (seed !== undefined && seeds !== undefined) throw usage('--seeds: must not be given together with --seed');
  if (seed !== undefined) return [seed, seed];
  if (seeds === undefined) {
    if (minutes === undefined) return [1, profileNames().length];
    return [flag<number>(context, 'first') ?? 1, Number.MAX_SAFE_INTEGER];
  }
  const range = /^(\d{1,9})\.\.(\d{1,9})$/.exec(seeds);
  if (range === null || Number(range[1]) > Number(range[2])) {
    throw usage(`--seeds ${seeds}: must be a range such as 1..100`);
  }
  return [Number(range[1]), Number(range[2])];
}

function faultsOf(text: string | undefined): readonly number[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  if (!/^\d{1,6}(,\d{1,6})*$/.test(text)) throw usage(`--faults ${text}: must be numbers such as 0,3, or none`);
  return text.split(',').map(Number);
}

function known<T>(name: string, find: () => T): T {
  try {
    return find();
  } catch (error) {
    throw usage(`--${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function usage(line: string): CliError {
  return new CliError(exitCodes.wrongUsage, 'wrong-usage', line);
}

function optionsFor(
  { terminal }: CommandContext,
  { program, profile, nodes, until, keep, verbose }: Choice,
  seed: number,
): Parameters<typeof simulate>[0] {
  const profiles = profileNames();
  return {
    seed,
    program,
    // Without a choice, the profiles take turns with the seed.
    profile: profile ?? profiles[seed % profiles.length] ?? 'mixed',
    ...(nodes === undefined ? {} : { nodes }),
    ...(until === undefined ? {} : { until }),
    ...(keep === undefined ? {} : { keep }),
    ...(verbose ? { onTrace: (entry) => terminal.out(formatEntry(entry)) } : {}),
  };
}

async function print(context: CommandContext, choice: Choice, result: SimulationResult): Promise<void> {
  const { json, terminal } = context;
  if (choice.hashes) {
    const { plan, hash, failure } = result;
    return terminal.out(`${plan.seed} ${plan.profile.name} ${hash} ${failure?.rule ?? 'ok'}`);
  }
  const shrunk = result.failure !== undefined && choice.shrinks ? await shrink(result, choice.program) : undefined;
  const shown = shrunk?.result ?? result;
  const { plan, hash, steps, virtualMs, failure } = shown;
  if (json) {
    terminal.out(JSON.stringify({ seed: plan.seed, profile: plan.profile.name, hash, steps, virtualMs, failure }));
  } else if (failure !== undefined || choice.first === choice.last) {
    const report = formatReport(shown);
    terminal.out(inClone ? report : report.replaceAll('npm run sim -- ', 'singlet sim '));
    if (shrunk !== undefined) {
      terminal.out(`  (shrunk from ${result.plan.faults.length} faults in ${shrunk.runs} runs)\n`);
    }
    if (failure === undefined) statistics(context, result);
  }
}

function statistics({ terminal }: CommandContext, { settledAfterMs, statistics }: SimulationResult): void {
  terminal.out(`  settled ${Math.round(settledAfterMs ?? NaN)} ms after the last fault`);
  for (const [name, value] of Object.entries(statistics)) terminal.out(`  ${name}: ${value}`);
}
