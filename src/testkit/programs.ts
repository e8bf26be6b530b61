/** The programs that `npm run sim` can run. */
import { callerProgram } from './caller_program.ts';
import { membershipProgram } from './membership_program.ts';
import { largeSingletonProgram, singletonProgram, strictSingletonProgram } from './singleton_program.ts';
import type { Program } from './program.ts';
import { spawnProgram } from './spawn_program.ts';

const programs: readonly Program[] = [
  singletonProgram,
  strictSingletonProgram,
  largeSingletonProgram,
  callerProgram,
  spawnProgram,
  membershipProgram,
];

/** The names of all programs that come with the simulator. */
export function programNames(): string[] {
  return programs.map((program) => program.name);
}

/** @throws RangeError */
export function programNamed(name: string): Program {
  const program = programs.find((candidate) => candidate.name === name);
  if (program === undefined) throw new RangeError(`program ${name} is unknown; there are ${programNames().join(', ')}`);
  return program;
}
