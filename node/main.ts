/** The life of the ready-made node: flags, joining, its line, the scheduler, leaving. */
import type { Hono } from 'hono';
import { OptionsError } from '../src/actor/options.ts';
import { Cluster, ClusterOptions, JoinError } from '../src/facade/mod.ts';
import { limits } from '../src/limits.ts';
import { type ActorRef, ActorSystem, type Logger } from '../src/mod.ts';
import { isLoopbackHost } from '../src/transport/address.ts';
import { ListenError } from '../src/transport/errors.ts';
import type { Runtime } from '../src/transport/runtime.ts';
import { helpText, type NodeFlags, parseFlags, postgresVariable, secretVariable, tokenVariable } from './flags.ts';
import { DurableJobScheduler } from './durable_job_scheduler.ts';
import type { JobCommand, JobReply } from './job_messages.ts';
import { JobScheduler, jobSchedulerOptions } from './job_scheduler.ts';
import { jobStores, type StoreChoice } from './job_stores.ts';
import { jobsApi } from './jobs_api.ts';
import { jobsGuard } from './jobs_guard.ts';
import { nodeLogger } from './node_log.ts';
import { isPostgresUrl, postgresUrlRule } from './postgres_url.ts';
import { tokenOf } from './token.ts';

const exitCodes = { left: 0, failed: 1, wrongFlags: 2 } as const;

/** A flag, or what it stands for, is wrong: told in one line, exit code 2. */
class FlagError extends Error {}

/** Runs a node until it is told to leave, or its cluster is done with it. Ends the process itself. */
export async function main(runtime: Runtime): Promise<void> {
  const parsed = parseFlags(runtime.args());
  switch (parsed.kind) {
    case 'help':
      console.log(helpText);
      return runtime.exit(exitCodes.left);
    case 'wrong':
      console.error(parsed.line);
      return runtime.exit(exitCodes.wrongFlags);
    case 'run':
      break;
    default:
      parsed satisfies never;
  }
  try {
    await run(runtime, parsed.flags);
  } catch (error) {
    const wrong = error instanceof FlagError || isOptionsError(error);
    console.error(
      wrong || error instanceof ListenError ? lineOf(error as Error) : String((error as Error)?.stack ?? error),
    );
    runtime.exit(wrong ? exitCodes.wrongFlags : exitCodes.failed);
  }
}

async function run(runtime: Runtime, flags: NodeFlags): Promise<void> {
  const secret = await secretOf(runtime, flags);
  const given = await givenToken(runtime, flags);
  const token = given ?? (secret === undefined ? undefined : await tokenOf(secret));
  const log = nodeLogger(flags.logLevel);
  const openStores = await storesOf(runtime, flags, log);
  const system = ActorSystem.create('node', { logger: log });
  const found: Found = { cluster: undefined, leaving: false, stopLooking: new AbortController() };
  const open = given === undefined && isLoopbackHost(flags.host);
  const options = optionsOf(flags, secret, token).withHttp((app) => {
    return (app as Hono).route(
      '/',
      jobsApi({ guard: jobsGuard({ token, open }), ask: (command) => ask(found.cluster, command) }),
    );
  });
  leaveOnSignal(runtime, log, found);
  // A node can be reached, and so has its line to print, before it is in a cluster.
  const onListening = (cluster: Cluster) => {
    found.cluster = cluster;
    console.log(lineFor(runtime, cluster));
  };
  try {
    await Cluster.join(system, options, { signal: found.stopLooking.signal, onListening });
  } catch (error) {
    if (!(error instanceof JoinError)) throw error;
    return end(runtime, log, found, error.message);
  }
  const cluster = found.cluster!;
  if (!found.leaving) {
    startScheduler(cluster, flags, openStores);
  }
  const { why } = await cluster.whenEnded;
  // An operator may have asked for it.
  if (why === 'left') found.leaving = true;
  end(
    runtime,
    log,
    found,
    `this node is out of its cluster and ends, to be started again by whoever watches over it: ${why}`,
  );
}

type OpenStores = Awaited<ReturnType<typeof jobStores>>;

async function storesOf(runtime: Runtime, flags: NodeFlags, log: Logger): Promise<OpenStores | undefined> {
  const chosen = await chosenStore(runtime, flags);
  if (chosen === undefined) return undefined;
  try {
    return await jobStores(chosen.store, log);
  } catch (error) {
    throw new FlagError(`${chosen.by}: ${error instanceof Error ? error.message : error}`);
  }
}

/** Where to keep jobs, and what says so. */
async function chosenStore(
  runtime: Runtime,
  { store, postgresFile }: NodeFlags,
): Promise<{ readonly by: string; readonly store: StoreChoice } | undefined> {
  if (store !== undefined) return { by: `--${store.kind}`, store };
  const [by, url] = postgresFile === undefined
    ? [postgresVariable, runtime.environmentVariable(postgresVariable)]
    : [`--postgres-file ${postgresFile}`, await hidden(runtime, '--postgres-file', postgresFile)];
  if (url === undefined) return undefined;
  if (!isPostgresUrl(url)) throw new FlagError(`${by}: ${postgresUrlRule}`);
  return { by, store: { kind: 'postgres', url } };
}

function startScheduler(cluster: Cluster, { name }: NodeFlags, open: OpenStores | undefined): void {
  const host = cluster.address;
  if (open === undefined) {
    cluster.singleton.start(JobScheduler, () => new JobScheduler(host), jobSchedulerOptions());
    return;
  }
  const options = { host, persistenceId: `jobs-${encodeURIComponent(name)}`, open };
  cluster.singleton.start(DurableJobScheduler, () => new DurableJobScheduler(options), jobSchedulerOptions());
}

interface Found {
  /** Set once the node listens. */
  cluster: Cluster | undefined;
  leaving: boolean;
  readonly stopLooking: AbortController;
}

function end(runtime: Runtime, log: Logger, { leaving }: Found, why: string): void {
  if (!leaving) log.error(why);
  runtime.exit(leaving ? exitCodes.left : exitCodes.failed);
}

/** The first signal makes the node leave; a second one ends it on the spot. */
function leaveOnSignal(runtime: Runtime, log: Logger, found: Found): void {
  runtime.onSignal((signal) => {
    if (found.leaving) {
      log.warn(`${signal} again: exit without leaving`);
      return runtime.exit(exitCodes.failed);
    }
    log.info(`${signal}: leaving`);
    found.leaving = true;
    if (found.cluster === undefined) found.stopLooking.abort();
    else found.cluster.leave().catch((error) => log.error('leaving failed', { error }));
  });
}

async function secretOf(runtime: Runtime, { secret, secretFile }: NodeFlags): Promise<string | undefined> {
  if (secretFile !== undefined) return await hidden(runtime, '--secret-file', secretFile);
  return secret ?? runtime.environmentVariable(secretVariable);
}

/** The token that was asked for; undefined where none was. */
async function givenToken(runtime: Runtime, { token, tokenFile }: NodeFlags): Promise<string | undefined> {
  if (tokenFile !== undefined) return await hidden(runtime, '--token-file', tokenFile);
  return token ?? runtime.environmentVariable(tokenVariable);
}

async function hidden(runtime: Runtime, flag: string, file: string): Promise<string> {
  let text: string;
  try {
    text = await runtime.readTextFile(file);
  } catch (error) {
    throw new FlagError(`${flag} ${file}: cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  // Editors end a file with a line break, which nobody means to be part of the secret.
  const content = text.replace(/\r?\n$/, '');
  if (content === '') throw new FlagError(`${flag} ${file}: is empty`);
  return content;
}

function optionsOf(flags: NodeFlags, secret: string | undefined, token: string | undefined): ClusterOptions {
  const options = ClusterOptions.create()
    .withName(flags.name)
    .withHost(flags.host)
    .withPort(flags.port)
    .withSeeds(flags.seeds)
    .withRoles(flags.roles)
    // A node without a supervisor's patience waits for its seeds, and /ready says what is missing.
    .withJoinTimeoutMs(limits.timerMs);
  if (secret !== undefined) options.withSecret(secret);
  if (token !== undefined) options.withToken(token);
  if (flags.form) options.withSelfElection('immediate');
  return options;
}

function ask(cluster: Cluster | undefined, command: JobCommand): Promise<JobReply> {
  if (cluster === undefined || cluster.selfMember.status === 'joining') {
    return Promise.reject(new Error(`this node is not in a cluster yet: ${cluster?.readiness() ?? 'it is starting'}`));
  }
  const scheduler: ActorRef<JobCommand> = cluster.singleton.ref(JobScheduler.singleton);
  return scheduler.ask<JobReply>(command);
}

function lineFor(runtime: Runtime, cluster: Cluster): string {
  return `node ${cluster.address} uid ${cluster.uid} on ${runtime.name} ${runtime.version}, http://${cluster.address}/`;
}

function isOptionsError(error: unknown): error is Error & { field: string; rule: string; value?: unknown } {
  return error instanceof OptionsError || (error instanceof Error && error.name === 'OptionsError');
}

/** One line that names the flag, and neither fields nor options a command line does not have. */
function lineOf(error: Error): string {
  if (!isOptionsError(error)) return error.message.replace(/\s*\n\s*/g, ' ');
  const shown = typeof error.value === 'string' && error.value !== '(hidden)' ? ` ${error.value}` : '';
  return `--${error.field}${shown}: ${error.rule.replace(/ \(or set insecure: true.*\)$/, '')}`.replace(
    /\s*\n\s*/g,
    ' ',
  );
}
