/** Registrations of spawned singletons, as cluster entries and on the wire. All pure. */
import { OptionsError } from '../actor/options.ts';
import { canonicalText } from '../cluster/canonical.ts';
import type { ClusterEntry, MembershipView } from '../cluster/member.ts';
import { fail, textOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import { Codec } from '../wire/codec.ts';
import { SerializationError } from '../wire/errors.ts';
import { checkRole, checkTypeName } from './key.ts';
import { settingsOf, type SpawnSettings } from './spawn_settings.ts';

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
/** Without refs: an actor is not the same value on every node. */
const codec = new Codec({ maxBytes: limits.spawnBytes });

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

/**
 * The registration as every node will have it: a copy that the caller cannot change any more. A value that is not the same
 * after it has travelled would keep the nodes from ever agreeing on their state.
 * @throws OptionsError when `props` cannot travel
 */
export function settled(wanted: Registration): Registration {
  const refuse = (why: string): never => {
    throw new OptionsError('SpawnOptions', 'props', '(a value)', `must be plain data that can be sent: ${why}`);
  };
  try {
    const value = codec.decode(codec.encode(registrationValue(wanted)));
    if (canonicalText(codec.decode(codec.encode(value))) !== canonicalText(value)) refuse('it changes on its way');
    return readRegistrationOf(wanted.name, value);
  } catch (error) {
    if (error instanceof SerializationError) return refuse(error.message);
    throw error;
  }
}

const known = new WeakMap<ClusterEntry, Registration | 'none'>();
const sizes = new WeakMap<ClusterEntry, number>();

/** Undefined for entries of another sort, deleted ones, and those that are not well-formed. */
export function readRegistration(entry: ClusterEntry | undefined): Registration | undefined {
  if (entry === undefined || entry.value === null || !entry.key.startsWith(prefix)) return undefined;
  let registration = known.get(entry);
  if (registration === undefined) {
    try {
      registration = readRegistrationOf(entry.key.slice(prefix.length), entry.value);
    } catch {
      registration = 'none';
    }
    known.set(entry, registration);
  }
  return registration === 'none' ? undefined : registration;
}

/** @throws WireError or OptionsError */
export function readRegistrationOf(name: unknown, value: unknown): Registration {
  checkTypeName(name, 'registration');
  if (!Array.isArray(value) || value.length !== 4) return fail('registration', value, 'four fields');
  const role = value[1] ?? undefined;
  checkRole(role, 'registration');
  const settings = value[3];
  if (typeof settings !== 'object' || settings === null) return fail('settings', settings, 'an object');
  const kind = textOf(value[0], limits.typeNameChars, 'kind');
  return { name, kind, role, props: value[2] ?? undefined, settings: settingsOf(settings) };
}

export function registrations(view: MembershipView): Registration[] {
  const all: Registration[] = [];
  for (const entry of view.entries.values()) {
    const registration = readRegistration(entry);
    if (registration) all.push(registration);
  }
  return all;
}

/** Bytes that a registration adds to the state that all members send each other, about. */
export function gossipBytes(view: MembershipView): number {
  let sum = 0;
  for (const entry of view.entries.values()) sum += entryBytes(entry, view.members.length);
  return sum;
}

/** The entry, and what each member's record says about having started it. */
export function registrationBytes(wanted: Registration, members: number): number {
  return spawnKey(wanted.name).length + codec.encodeShared(registrationValue(wanted)).length + 64 +
    members * (wanted.name.length + 24);
}

function entryBytes(entry: ClusterEntry, members: number): number {
  const registration = readRegistration(entry);
  if (registration === undefined) return entry.key.length + 64;
  let alone = sizes.get(entry);
  if (alone === undefined) sizes.set(entry, alone = registrationBytes(registration, 0));
  return alone + members * (registration.name.length + 24);
}
