/** What each field of `ClusterSettings` must be. */
import { mayHoldSecret, type Rule, type Rules, rules } from '../actor/options.ts';
import { limits } from '../limits.ts';
import { isHost, isWildcardHost, parseAddress } from '../transport/address.ts';
import type { ClusterSettings, FailureDetectorSettings } from './cluster_options.ts';
import { downingNames, isDowningOption } from './downing/mod.ts';
import { addressRule } from './downing/rules.ts';

/** Values of these are never part of an error. */
export const concealedFields: readonly (keyof ClusterSettings)[] = ['secret', 'token', 'tls'];

export const settingRules: Rules<ClusterSettings> = {
  name: printable(limits.typeNameChars),
  host: rule(
    'must be a host name or an IP address that other nodes can dial (IPv6 without brackets, no wildcard, no port)',
    (value) => typeof value === 'string' && isHost(value) && !isWildcardHost(value),
  ),
  port: rules.integer(0, 65_535),
  bindHost: rule(
    'must be a host name, an IP address or a wildcard such as 0.0.0.0',
    (value) => typeof value === 'string' && value !== '' && (isHost(value) || isWildcardHost(value)),
  ),
  advertisedPort: rules.integer(1, 65_535),
  seeds: rules.listOf(
    rule('is host:port or http(s)://host[:port] without wildcard, credentials or query', isSeed),
    limits.seeds,
    mayHoldSecret,
  ),
  roles: rules.listOf(printable(limits.roleChars, 'is'), limits.roles),
  kinds: rules.listOf(rule('is a class, or { name, factory }', isKind), limits.kinds),
  secret: rule(
    `must be a string of ${limits.secretMinChars} to ${limits.secretChars} characters, or ` +
      `{ current, also } with at most ${limits.secretsAccepted} others of that length`,
    isSecret,
  ),
  insecure: rules.boolean,
  frameIntegrity: rules.boolean,
  rejoin: rules.boolean,
  reads: rules.oneOf('open', 'token'),
  tls: rule(
    'must have cert and key, and may have ca, each a PEM text (not a path), and clientCertificates: true, with ca',
    isTls,
  ),
  token: rule(
    `must be ${limits.secretMinChars} to ${limits.secretChars} visible ASCII characters without spaces`,
    (value) => isSecretText(value) && /^[\x21-\x7e]+$/.test(value),
  ),
  downing: rule(
    `must be a strategy, a provider, or one of ${downingNames.join(', ')}`,
    isDowningOption,
  ),
  failureDetector: rules.object,
  stableAfterMs: rules.durationMs(10),
  gossipIntervalMs: rules.durationMs(10),
  selfElection: rules.either(rules.oneOf('cold-start', 'immediate', 'never'), rules.durationMs(0)),
  joinTimeoutMs: rules.durationMs(1),
  leaveTimeoutMs: rules.durationMs(1),
  runtime: withFunctions('a runtime', 'listen', 'dial', 'probe'),
  transport: rules.function,
  minMembers: rules.integer(1, limits.members),
  appVersion: rule(
    'must be a string of at most 64 printable characters',
    (value) => typeof value === 'string' && value.length <= 64 && !/[\p{Cc}\p{Cs}]/u.test(value),
  ),
  handOverTimeoutMs: rules.durationMs(1),
  stopBoundMs: rules.durationMs(1),
  driftBound: rules.number(0, 0.1),
  gateWindowMs: rules.durationMs(40),
  removalMarginMs: rules.durationMs(0),
  leaseVoters: rules.listOf(addressRule, limits.leaseVoters, mayHoldSecret),
  leaseMaxTtlMs: rules.durationMs(100),
  // Entry by entry in `caller_grants.ts`, so that no error shows a token.
  callers: rules.anything,
  http: rules.either(rules.boolean, rules.function),
};

export const failureDetectorRules: Rules<FailureDetectorSettings> = {
  heartbeatMs: rules.durationMs(10),
  unreachableAfterMs: rules.durationMs(20),
};

/** The seed as it is dialled: lower case, without a slash at the end. Undefined for what is no seed. */
export function normalSeed(seed: string): string | undefined {
  if (/^https?:\/\//i.test(seed)) return normalUrl(seed);
  const parsed = parseAddress(seed);
  if (parsed === undefined || parsed.port === 0 || isWildcardHost(parsed.host)) return undefined;
  return seed.toLowerCase();
}

function normalUrl(seed: string): string | undefined {
  let url: URL;
  try {
    url = new URL(seed);
  } catch {
    return undefined;
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  if (!isHost(host) || isWildcardHost(host) || url.port === '0') return undefined;
  return url.href.replace(/\/+$/, '');
}

function rule(text: string, accepts: (value: unknown) => boolean): Rule {
  return { rule: text, accepts };
}

function printable(maxChars: number, verb = 'must be'): Rule {
  return rule(
    `${verb} a string of 1 to ${maxChars} printable characters`,
    (value) =>
      typeof value === 'string' && value !== '' && value.length <= maxChars && !/[\p{Cc}\p{Cs}]/u.test(value) &&
      value.trim() === value,
  );
}

function isSeed(value: unknown): boolean {
  return typeof value === 'string' && value.length <= limits.urlChars && normalSeed(value) !== undefined;
}

function isKind(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null) return false;
  const { name, factory } = value as Record<string, unknown>;
  return typeof name === 'string' && name !== '' && typeof factory === 'function';
}

function isSecret(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isSecretText(value);
  const { current, also = [], ...rest } = value as Record<string, unknown>;
  if (Object.keys(rest).length > 0 || !isSecretText(current) || !Array.isArray(also)) return false;
  return also.length <= limits.secretsAccepted && also.every(isSecretText);
}

function isSecretText(value: unknown): value is string {
  return typeof value === 'string' && value.length >= limits.secretMinChars && value.length <= limits.secretChars;
}

function isTls(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { cert, key, ca, clientCertificates, ...rest } = value as Record<string, unknown>;
  if (Object.keys(rest).length > 0) return false;
  if (clientCertificates !== undefined && typeof clientCertificates !== 'boolean') return false;
  if (clientCertificates === true && ca === undefined) return false;
  return [cert, key, ...(ca === undefined ? [] : [ca])].every((text) =>
    typeof text === 'string' && text.includes('-----BEGIN')
  );
}

function withFunctions(what: string, ...names: readonly string[]): Rule {
  return rule(`must be ${what}, with ${names.join(', ')}`, (value) => {
    if (typeof value !== 'object' || value === null) return false;
    return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
  });
}
