/** What a deploy gate wants, and what is missing of it. Pure. */
import type { MembersReport, SingletonReport } from '../src/http/mod.ts';
import type { CountRule } from './flag_values.ts';

export interface ClusterStatus extends MembersReport {
  readonly url: string;
  readonly ready: boolean;
  /** Why it is not ready, and what is not well although it is. */
  readonly reasons: readonly string[];
  readonly singletons: readonly SingletonReport[];
}

export interface Expectations {
  readonly members: CountRule | undefined;
  readonly singletons: readonly string[];
  readonly appVersion: string | undefined;
}

/** Each a sentence; none when all is well. */
export function unmet(status: ClusterStatus, expected: Expectations): string[] {
  return [
    ...readiness(status),
    ...membership(status, expected),
    ...hosts(status, expected.singletons),
  ];
}

function readiness({ ready, reasons }: ClusterStatus): string[] {
  if (ready) return [];
  return reasons.length > 0 ? reasons.map((reason) => `Not ready: ${reason}`) : ['Not ready.'];
}

function membership({ members }: ClusterStatus, expected: Expectations): string[] {
  const problems: string[] = [];
  const up = members.filter((member) => member.status === 'up');
  const { members: rule, appVersion } = expected;
  if (rule !== undefined && (rule.orMore ? up.length < rule.count : up.length !== rule.count)) {
    problems.push(`${up.length} of ${rule.count}${rule.orMore ? ' or more' : ''} members are up.`);
  }
  const unreachable = members.filter((member) => !member.reachable).map((member) => member.address);
  if (unreachable.length > 0) problems.push(`Unreachable: ${unreachable.join(', ')}.`);
  const other = appVersion === undefined ? [] : members.filter((member) => member.appVersion !== appVersion);
  if (other.length > 0) {
    const told = other.map((member) => `${member.address} (${member.appVersion === '' ? 'none' : member.appVersion})`);
    problems.push(`Another app version than ${appVersion}: ${told.join(', ')}.`);
  }
  return problems;
}

function hosts({ singletons }: ClusterStatus, wanted: readonly string[]): string[] {
  const unknown = wanted.filter((name) => !singletons.some((singleton) => singleton.name === name));
  return [
    ...unknown.map((name) => `No member has started ${name}.`),
    ...singletons.filter(({ host }) => host === null).map(({ name, problem }) =>
      `${name} has no host${problem === null ? '' : `: ${problem}`}.`
    ),
  ];
}
