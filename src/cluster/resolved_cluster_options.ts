/** Validation of cluster options, once, into what the parts of a node read. */
import type { Logger } from '../actor/environment.ts';
import { checkOption, checkOptions, OptionsError } from '../actor/options.ts';
import { isLoopbackHost } from '../transport/address.ts';
import { crc32 } from '../wire/crc32.ts';
import { protocolVersion } from '../transport/hello.ts';
import type { Runtime, TlsOptions } from '../transport/runtime.ts';
import type { Secret } from '../transport/secret_keys.ts';
import { concealedFields, failureDetectorRules, normalSeed, settingRules } from './cluster_option_rules.ts';
import { ClusterOptions, type ClusterSettings, type HttpOption, type KindOption } from './cluster_options.ts';
import type { SelfElection, TransportFactory } from './cluster_options.ts';
import { type ResolvedGrant, resolveGrants } from './caller_grants.ts';
import { Concealed } from './concealed.ts';
import type { DowningStrategy } from './downing/contract.ts';
import { downingStrategy } from './downing/mod.ts';
import { compareText } from './member.ts';
import { resolveTiming, type Timing } from './timing.ts';

/** Frozen; secrets are wrapped, so that nothing that prints it shows them. */
export interface ResolvedClusterOptions {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly bindHost: string;
  readonly advertisedPort: number | undefined;
  /** Lower case, without repetitions. */
  readonly seeds: readonly string[];
  readonly roles: readonly string[];
  readonly kinds: readonly KindOption[];
  readonly secret: Concealed<Secret> | undefined;
  readonly insecure: boolean;
  readonly frameIntegrity: boolean;
  readonly tls: Concealed<TlsOptions> | undefined;
  readonly token: Concealed<string> | undefined;
  readonly downing: DowningStrategy;
  readonly timing: Timing;
  readonly gossipIntervalMs: number;
  readonly selfElection: SelfElection;
  readonly joinTimeoutMs: number;
  readonly leaveTimeoutMs: number;
  readonly runtime: Runtime | undefined;
  readonly transport: TransportFactory | undefined;
  readonly minMembers: number;
  readonly appVersion: string;
  /** Lower case, sorted, without repetitions. */
  readonly leaseVoters: readonly string[];
  readonly leaseMaxTtlMs: number;
  readonly rejoin: boolean;
  readonly reads: 'open' | 'token';
  readonly callers: Concealed<readonly ResolvedGrant[]>;
  readonly http: HttpOption;
  /** Not for users: a simulated cluster of few nodes gossips as one of many does, see `NodeSettings`. */
  readonly gossipToAllUpTo?: number;
}

export interface OptionsContext {
  /** The cluster's name unless the options give one. */
  readonly systemName: string;
  readonly log: Pick<Logger, 'error'>;
}

const family = 'ClusterOptions';

/** @throws OptionsError for the first bad value; it names family, field, value and rule, and never shows a secret. */
export function resolveClusterOptions(
  options: ClusterOptions | ClusterSettings,
  context: OptionsContext,
): ResolvedClusterOptions {
  const settings = options instanceof ClusterOptions ? options.toSettings() : options;
  checkSettings(settings);
  const downing = downingStrategy(settings.downing, context.log);
  const timing = timingOf(settings, downing);
  // Durations that do not go together are refused here.
  downing.arbiter?.times(timing);
  const host = (settings.host ?? '127.0.0.1').toLowerCase();
  const name = settings.name ?? context.systemName;
  checkOption(family, 'name', name, settingRules.name);
  const resolved: ResolvedClusterOptions = {
    name,
    host,
    port: settings.port ?? 0,
    bindHost: settings.bindHost ?? host,
    advertisedPort: settings.advertisedPort,
    seeds: Object.freeze(unique((settings.seeds ?? []).map((seed) => normalSeed(seed) ?? seed))),
    roles: Object.freeze(unique(settings.roles ?? [])),
    kinds: Object.freeze([...(settings.kinds ?? [])]),
    secret: concealed(copySecret(settings.secret)),
    insecure: settings.insecure ?? false,
    frameIntegrity: settings.frameIntegrity ?? false,
    tls: concealed(settings.tls && { ...settings.tls }),
    token: concealed(settings.token),
    downing,
    timing,
    gossipIntervalMs: settings.gossipIntervalMs ?? 1_000,
    selfElection: settings.selfElection ?? 'cold-start',
    joinTimeoutMs: settings.joinTimeoutMs ?? 60_000,
    leaveTimeoutMs: settings.leaveTimeoutMs ?? 15_000,
    runtime: settings.runtime,
    transport: settings.transport,
    minMembers: settings.minMembers ?? 1,
    appVersion: settings.appVersion ?? '',
    leaseVoters: Object.freeze(
      unique((settings.leaseVoters ?? []).map((voter) => voter.toLowerCase())).toSorted(compareText),
    ),
    leaseMaxTtlMs: settings.leaseMaxTtlMs ?? 30_000,
    rejoin: settings.rejoin ?? true,
    reads: settings.reads ?? 'open',
    callers: new Concealed(resolveGrants(settings.callers, secretTexts(settings))),
    http: settings.http ?? true,
  };
  checkExposure(resolved);
  checkIntegrity(resolved);
  return Object.freeze(resolved);
}

/**
 * The settings that must agree in the whole cluster, as text `key=value; …` in a fixed order: the protocol, who wins a
 * split, and every duration that the safety of others rests on. At most 1 024 characters, printed by `/cluster/seed`.
 */
export function fingerprint(options: ResolvedClusterOptions): string {
  const { timing, downing } = options;
  const parameters = Object.entries(downing.parameters ?? {}).sort(([a], [b]) => compareText(a, b));
  const fields: [key: string, value: string | number | boolean][] = [
    ['protocol', protocolVersion],
    ['downing', downing.name],
    ...parameters.map(([key, value]): [string, string | number | boolean] => [`downing.${key}`, value]),
    ['heartbeatMs', timing.heartbeatMs],
    ['unreachableAfterMs', timing.unreachableAfterMs],
    ['stableAfterMs', timing.fixedStableAfterMs ?? `by size within ${timing.fixedHandOverTimeoutMs ?? 'default'}`],
    ['gateWindowMs', timing.gateWindowMs],
    ['stopBoundMs', timing.stopBoundMs],
    ['driftBound', timing.driftBound],
    ['removalMarginMs', timing.removalMarginMs],
    ...leaseFields(options),
  ];
  return fields.map(([key, value]) => `${key}=${String(value).replaceAll(';', ',')}`).join('; ').slice(0, 1_024);
}

/** Two nodes that count other voters could each find a majority. Long lists are shortened to their check sum. */
function leaseFields({ leaseVoters, leaseMaxTtlMs }: ResolvedClusterOptions): [key: string, value: string | number][] {
  if (leaseVoters.length === 0) return [];
  const list = leaseVoters.join(' ');
  const sum = crc32(new TextEncoder().encode(list)).toString(16);
  return [['leaseVoters', list.length <= 200 ? list : `${leaseVoters.length} (${sum})`], [
    'leaseMaxTtlMs',
    leaseMaxTtlMs,
  ]];
}

function checkSettings(settings: ClusterSettings): void {
  if (typeof settings === 'object' && settings !== null) {
    for (const field of concealedFields) {
      const value = settings[field];
      const { rule, accepts } = settingRules[field];
      if (value !== undefined && !accepts(value)) throw new OptionsError(family, field, '(hidden)', rule);
    }
  }
  checkOptions(family, settings, settingRules);
  if (settings.failureDetector !== undefined) {
    checkOptions(`${family}.failureDetector`, settings.failureDetector, failureDetectorRules);
  }
}

function timingOf(settings: ClusterSettings, { arbiter }: DowningStrategy): Timing {
  const { stableAfterMs, handOverTimeoutMs, gateWindowMs, stopBoundMs, driftBound, removalMarginMs } = settings;
  return resolveTiming({
    ...settings.failureDetector,
    stableAfterMs,
    handOverTimeoutMs,
    gateWindowMs,
    stopBoundMs,
    driftBound,
    removalMarginMs,
    ...(arbiter === undefined ? {} : { arbitrationMs: arbiter.minorityDelayMs + arbiter.acquireTimeoutMs }),
  });
}

/** Without a secret only this machine may reach the node, unless the owner says otherwise in so many words. */
function checkExposure(options: ResolvedClusterOptions): void {
  if (options.secret !== undefined || options.insecure || options.transport !== undefined) return;
  for (const host of new Set([options.host, options.bindHost])) {
    if (isLoopbackHost(host)) continue;
    const rule =
      `must be given, since other machines can reach ${host} (or set insecure: true, which lets anybody join)`;
    throw new OptionsError(family, 'secret', undefined, rule);
  }
}

function checkIntegrity({ frameIntegrity, secret, tls, transport }: ResolvedClusterOptions): void {
  if (!frameIntegrity || transport !== undefined) return;
  const refuse = (rule: string): never => {
    throw new OptionsError(family, 'frameIntegrity', true, rule);
  };
  if (secret === undefined) refuse('needs a secret, from which its keys are derived');
  if (tls !== undefined) refuse('is not for links with TLS, which protects every frame already');
}

function concealed<T>(value: T | undefined): Concealed<T> | undefined {
  return value === undefined ? undefined : new Concealed(value);
}

function copySecret(secret: Secret | undefined): Secret | undefined {
  return typeof secret === 'object' ? { current: secret.current, also: [...(secret.also ?? [])] } : secret;
}

function secretTexts({ secret, token }: ClusterSettings): string[] {
  const secrets = typeof secret === 'object' ? [secret.current, ...secret.also] : [secret];
  return [...secrets, token].filter((text) => text !== undefined);
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
