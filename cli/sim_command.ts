/** `singlet sim`: the simulator that checks the promises, on the user's own machine. */
import {
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
}

export async function sim(context: CommandContext): Promise<ExitCode> {
  const choice = readChoice(context);
  const started = context.now();
  const failed: number[] = [];
  let runs = 0;
  for (let seed = choice.first; seed <= choice.last; seed += 1) {
    if (context.now() >= choice.endsAt || context.interrupted.aborted) break;
    const of = choice.last === Number.MAX_SAFE_INTEGER ? '' : ` of ${choice.last}`;
    // On a terminal only: a log with a line for each run helps nobody.
    if (context.terminal.watched) context.terminal.progress(`seed ${seed}${of}, ${failed.length} failed`);
    const result = await simulate(optionsFor(choice, seed));
    runs += 1;
    if (result.failure !== undefined) failed.push(seed);
    await print(context, choice, result);
    await context.pause(0);
  }
  const seconds = (context.now() - started) / 1_000;
  const list = failed.length > 0 ? ` (seeds ${failed.join(', ')})` : '';
  if (context.json) context.terminal.out(JSON.stringify({ runs, failed, seconds }));
  else context.terminal.out(`${runs} runs, ${failed.length} failed${list}, ${seconds.toFixed(1)} s`);
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
  };
}

function seedsOf(context: CommandContext, minutes: number | undefined): readonly [number, number] {
  const seed = flag<number>(context, 'seed');
  const seeds = flag<string>(context, 'seeds');
  if (seed !== undefined && seeds !== undefined) throw usage('--seeds: must not be given together with --seed');
  if (seed !== undefined) return [seed, seed];
  if (seeds === undefined) return [1, minutes === undefined ? profileNames().length : Number.MAX_SAFE_INTEGER];
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

function optionsFor({ program, profile, nodes, until, keep }: Choice, seed: number): Parameters<typeof simulate>[0] {
  const profiles = profileNames();
  return {
    seed,
    program,
    // Without a choice, the profiles take turns with the seed.
    profile: profile ?? profiles[seed % profiles.length] ?? 'mixed',
    ...(nodes === undefined ? {} : { nodes }),
    ...(until === undefined ? {} : { until }),
    ...(keep === undefined ? {} : { keep }),
  };
}

async function print(context: CommandContext, choice: Choice, result: SimulationResult): Promise<void> {
  const { json, terminal } = context;
  const shown = result.failure === undefined ? result : (await shrink(result, choice.program)).result;
  const { plan, hash, steps, virtualMs, failure } = shown;
  if (json) {
    terminal.out(JSON.stringify({ seed: plan.seed, profile: plan.profile.name, hash, steps, virtualMs, failure }));
  } else if (failure !== undefined || choice.first === choice.last) {
    terminal.out(formatReport(shown).replaceAll('npm run sim -- ', 'singlet sim '));
  }
}
