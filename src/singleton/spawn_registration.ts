/** Registrations of spawned singletons: cluster entries, and the leader's decision about a new one. All pure. */
import type { MembershipView } from '../cluster/member.ts';
import { countOf, fail, textOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import { carriesRole } from './host.ts';
import { checkRole, checkTypeName } from './key.ts';
import type { DeliveryMode, OverflowPolicy } from './sender_stream.ts';
import { type SpawnError, spawnError } from './spawn_errors.ts';

/** How failures of a spawned singleton are answered; plain data, since it travels. */
export interface SpawnSupervisor {
  readonly directive?: 'restart' | 'resume' | 'stop';
  readonly maxRestarts?: number;
  readonly withinMs?: number;
  readonly backoff?: { readonly minMs: number; readonly maxMs: number; readonly jitter?: number };
}

/** What travels with a registration; all of it is the same on every node. */
export interface SpawnSettings {
  readonly delivery?: DeliveryMode;
  readonly overflow?: OverflowPolicy;
  readonly bufferSize?: number;
  readonly supervisor?: SpawnSupervisor;
}

export interface Registration {
  readonly name: string;
  readonly kind: string;
  readonly role: string | undefined;
  /** Given to the kind's factory; whatever the codec can carry. */
  readonly props: unknown;
  readonly settings: SpawnSettings;
}

const prefix = 'spawn:';
const kindPrefix = 'kind/';

export function spawnKey(name: string): string {
  return `${prefix}${name}`;
}

/** Under this name a member's record says that it can make actors of `kind`; no singleton can have such a name. */
export function kindMark(kind: string): string {
  return `${kindPrefix}${kind}`;
}

export function isKindMark(name: string): boolean {
  return name.startsWith(kindPrefix);
}

/** As the value of a cluster entry. */
export function registrationValue(registration: Registration): unknown {
  const { kind, role, props, settings } = registration;
  return [kind, role ?? null, props ?? null, settings];
}

/** Undefined for entries of another sort, deleted ones, and those that are not well-formed. */
export function readRegistration(key: string, value: unknown): Registration | undefined {
  if (!key.startsWith(prefix) || value === null) return undefined;
  try {
    return readRegistrationOf(key.slice(prefix.length), value);
  } catch {
    return undefined;
  }
}

/** @throws WireError or OptionsError */
export function readRegistrationOf(name: unknown, value: unknown): Registration {
  checkTypeName(name, 'registration');
  if (!Array.isArray(value) || value.length !== 4) return fail('registration', value, 'four fields');
  const role = value[1] ?? undefined;
  checkRole(role, 'registration');
  const settings = value[3];
  if (typeof settings !== 'object' || settings === null) return fail('settings', settings, 'an object');
  return { name, kind: textOf(value[0], limits.typeNameChars, 'kind'), role, props: value[2] ?? undefined, settings };
}

export function registrations(view: MembershipView): Registration[] {
  const all: Registration[] = [];
  for (const [key, entry] of view.entries) {
    const registration = readRegistration(key, entry.value);
    if (registration) all.push(registration);
  }
  return all;
}

export type SpawnDecision =
  | { readonly kind: 'exists' }
  /** Register it; `host` is the address of the member that will host it first. */
  | { readonly kind: 'register'; readonly host: string; readonly hostUid: string }
  | { readonly kind: 'refuse'; readonly error: SpawnError };

/** What the leader does about a request, by its view. Same name, kind and role again is the same singleton. */
export function decideSpawn(view: MembershipView, wanted: Registration): SpawnDecision {
  const refuse = (error: SpawnError): SpawnDecision => ({ kind: 'refuse', error });
  const all = registrations(view);
  const same = (one: Registration): boolean => one.kind === wanted.kind && one.role === wanted.role;
  const byName = all.find((one) => one.name === wanted.name);
  if (byName) {
    if (same(byName)) return { kind: 'exists' };
    const held = `${byName.kind}${byName.role === undefined ? '' : ` with role ${byName.role}`}`;
    return refuse(
      spawnError('actor-already-exists', `the name '${wanted.name}' is held by a singleton of kind ${held}`),
    );
  }
  const winner = all.find(same);
  if (winner) {
    const message = `the singleton of kind ${wanted.kind}${roleText(wanted.role)} is '${winner.name}'`;
    return refuse(spawnError('singleton-already-exists', message));
  }
  if (view.members.some((member) => member.started.has(wanted.name))) {
    return refuse(spawnError('actor-already-exists', `'${wanted.name}' is a singleton that nodes start themselves`));
  }
  if (all.length >= limits.singletons) {
    return refuse(spawnError('registry-full', `${limits.singletons} singletons are registered already`));
  }
  const able = view.members.filter((member) => member.status === 'up' && carriesRole(member, wanted.role));
  if (able.length === 0) {
    return refuse(spawnError('no-eligible-member', `no up member carries the role ${wanted.role ?? '(none)'}`));
  }
  const host = able.find((member) => member.started.has(kindMark(wanted.kind)));
  if (!host) {
    const message = `kind ${wanted.kind} is registered on no up member${
      roleText(wanted.role)
    }: see ClusterOptions.withKinds`;
    return refuse(spawnError('kind-not-registered', message));
  }
  return { kind: 'register', host: host.address, hostUid: host.uid };
}

function roleText(role: string | undefined): string {
  return role === undefined ? '' : ` with role ${role}`;
}

/** Acknowledgements that make a registration safe against the loss of any minority: more than half of the `up` members. */
export function quorumOf(view: MembershipView): number {
  return Math.floor(view.members.filter((member) => member.status === 'up').length / 2) + 1;
}

/** Fields of a request on the wire, and back. */
export function requestFields(wanted: Registration): readonly unknown[] {
  return [wanted.name, registrationValue(wanted)];
}

export function readRequestFields(
  name: unknown,
  value: unknown,
  attempt: unknown,
): { wanted: Registration; attempt: number } {
  return { wanted: readRegistrationOf(name, value), attempt: countOf(attempt, 'attempt') };
}
