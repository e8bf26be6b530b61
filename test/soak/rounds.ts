/** The three soak tests: planned moves, crashes of the host, and churn; each over real processes on three runtimes. */
import { readdirSync, readFileSync } from 'node:fs';
import type { RuntimeName } from '../../demo/runtime_commands.ts';
import { Arena, type Handling, randomOf, type SoakNode } from './arena.ts';
import { journalSuffix, type LedgerReport } from './ledger.ts';
import type { SenderReport } from './load.ts';
import { type Account, accounts, brokenAccounts, percentile, table } from './verdict.ts';

export const tests = ['moves', 'kills', 'churn'] as const;
export type TestName = typeof tests[number];

export interface SoakOptions {
  readonly rounds: number;
  readonly seed: number;
  /** Messages a second, of all senders together. */
  readonly rate: number;
  readonly runtimes: readonly RuntimeName[];
  /** The 99th percentile of the gaps of planned moves may be this. Default: no bound. */
  readonly gapMs?: number;
  /** How long the load runs before anything is done to the nodes; the first seconds of a runtime are its slowest. */
  readonly warmUpMs?: number;
  /** Told now and then how far it has got. */
  readonly say?: (text: string) => void;
  /** Told everything that is done and seen. */
  readonly trace?: (text: string) => void;
}

export interface SoakResult {
  readonly test: TestName;
  readonly accounts: readonly Account[];
  readonly lines: readonly string[];
  readonly broken: readonly string[];
}

const senders = 3;

interface Stage {
  readonly arena: Arena;
  readonly random: () => number;
  readonly options: SoakOptions;
  readonly say: (text: string) => void;
}

/** Runs one soak test. Rejects when it cannot go on; the error holds what the nodes printed. */
export async function soak(test: TestName, options: SoakOptions): Promise<SoakResult> {
  const arena = new Arena(options.trace);
  const stage: Stage = { arena, options, random: randomOf(options.seed), say: options.say ?? (() => {}) };
  try {
    await arena.start();
    await gather(stage, test === 'moves');
    const startedAt = performance.now();
    arena.load(options.rate / senders);
    await arena.until('the first messages are handled', () => arena.host());
    await pause(options.warmUpMs ?? 0);
    switch (test) {
      case 'moves':
        await moves(stage);
        break;
      case 'kills':
        await kills(stage);
        break;
      case 'churn':
        await churn(stage);
        break;
      default:
        test satisfies never;
    }
    return await close(stage, test, performance.now() - startedAt);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.stack : error}\n${trail(arena)}\n${arena.output()}`);
  } finally {
    await arena.end();
  }
}

/** A node of each runtime that may host, then a sender on each; `sendersHost`: senders may host too. */
async function gather({ arena, options: { runtimes } }: Stage, sendersHost: boolean): Promise<void> {
  for (const runtime of runtimes) await arena.join(runtime, { hosts: true }).up;
  for (let sender = 1; sender <= senders; sender += 1) {
    await arena.join(runtimes[sender % runtimes.length]!, { sender, hosts: sendersHost }).up;
  }
}

/** Operator moves, alone and in bursts, and hosts that leave while a replacement joins. */
async function moves(stage: Stage): Promise<void> {
  const { arena, options, random, say } = stage;
  const first = arena.handlings().length;
  for (let done = 0; done < options.rounds; done = arena.handlings().length - first) {
    const host = await arena.until('somebody hosts', () => arena.host());
    if (host.sender === 0 && random() < 0.2) await leaveAndReplace(stage, host);
    else await operate(stage, host, random() < 0.2 ? 3 : 1);
    if (random() < 0.7) await pause(50 + random() * 300);
    if (Math.floor(done / 20) < Math.floor((arena.handlings().length - first) / 20)) {
      say(`${arena.handlings().length - first} moves`);
    }
  }
}

async function leaveAndReplace({ arena, random }: Stage, host: SoakNode): Promise<void> {
  const { epoch } = arena.handlings().at(-1)!;
  const replace = () => arena.join(host.runtime, { hosts: true }).up;
  const early = random() < 0.5 ? replace() : undefined;
  const left = arena.leave(host);
  await arena.until('the next oldest hosts', () => arena.handlings().at(-1)!.epoch > epoch || undefined);
  await left;
  await (early ?? replace());
}

/** `count` moves right after each other, the last of them away from `host`, to where the singleton was moved least. */
async function operate({ arena, random }: Stage, host: SoakNode, count: number): Promise<void> {
  const able = arena.live().filter((node) => node.hosts && node.address !== undefined);
  const by = able[Math.floor(random() * able.length)]!;
  const others = able.filter((node) => node !== host);
  const seen = runtimePairs(arena);
  const timesOf = (node: SoakNode) => seen.get(`${host.runtime} to ${node.runtime}`) ?? 0;
  const least = Math.min(...others.map(timesOf));
  const targets = others.filter((node) => timesOf(node) === least);
  const last = targets[Math.floor(random() * targets.length)]!;
  const route = Array.from({ length: count - 1 }, () => able[Math.floor(random() * able.length)]!);
  for (const to of [...route, last]) {
    // A member that has just come may not be known as a host yet.
    while (!await arena.move(by, to)) await pause(20);
  }
  await arena.until(`the singleton moves to ${last.address}`, () => arena.host() === last || undefined);
}

/** How often the singleton went from a node of one runtime to one of another. */
function runtimePairs(arena: Arena): Map<string, number> {
  const pairs = new Map<string, number>();
  const hosts = arena.handlings().map(({ epoch }) => arena.runtimes.get(epoch));
  for (const [index, runtime] of hosts.slice(1).entries()) {
    const pair = `${hosts[index]} to ${runtime}`;
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

/** SIGKILL to the host, again and again; a replacement joins. */
async function kills({ arena, options, random, say }: Stage): Promise<void> {
  for (let round = 1; round <= options.rounds; round += 1) {
    const host = await arena.until('somebody hosts', () => arena.host());
    const { epoch } = arena.handlings().at(-1)!;
    await pause(random() * 200);
    arena.kill(host);
    await arena.until('the next host handles messages', () => arena.handlings().at(-1)!.epoch > epoch || undefined);
    const replacement = arena.join(host.runtime, { hosts: true });
    // Now and then the next one dies while only few are left.
    if (random() < 0.7) await replacement.up;
    await arena.until('two may host', () => hostsUp(arena) >= 2 || undefined);
    if (round % 5 === 0) say(`${round} kills`);
  }
}

function hostsUp(arena: Arena): number {
  return arena.live().filter((node) => node.hosts && node.address !== undefined).length;
}

/** Random leaves, kills and joins, also of nodes that are not up yet, one or two at once; the host is hit most. */
async function churn(stage: Stage): Promise<void> {
  const { arena, options, random, say } = stage;
  const { runtimes } = options;
  const leaving: Promise<void>[] = [];
  const freed: number[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    for (let hit = random() < 0.3 ? 2 : 1; hit > 0; hit -= 1) {
      const nodes = arena.live().filter((node) => node.hosts);
      const victim = random() < 0.6 ? arena.host() : nodes[Math.floor(random() * nodes.length)];
      const drawn = random();
      if (nodes.length <= 2 || victim === undefined || (drawn < 0.4 && nodes.length < 5)) {
        const runtime = runtimes[Math.floor(random() * runtimes.length)]!;
        arena.join(runtime, { hosts: true, port: random() < 0.3 ? freed.pop() ?? 0 : 0 });
      } else if (drawn < 0.7) {
        void victim.process.exited.then(() => victim.address && freed.push(Number(victim.address.split(':')[1])));
        arena.kill(victim);
      } else if (victim.address === undefined) victim.ending = true, victim.process.signal('SIGTERM');
      else leaving.push(arena.leave(victim));
    }
    if (random() < 0.25) await pause(random() * 500);
    else {
      await arena.until('two may host', () => hostsUp(arena) >= 2 || undefined);
      await arena.until('somebody hosts', () => arena.host());
    }
    arena.check();
    if (round % 10 === 0) say(`${round} rounds`);
  }
  await Promise.all(leaving);
  await arena.until('somebody hosts at the end', () => arena.host());
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Stops the load, and holds what was told against what was handled. */
async function close({ arena, options }: Stage, test: TestName, elapsedMs: number): Promise<SoakResult> {
  const reports = await arena.settle();
  const own = await arena.ledgerReport();
  arena.check();
  const journals = readJournals(arena.folder);
  const all = accounts(reports, journals);
  if (options.trace) { for (const line of ranges(reports, journals)) options.trace(line); }
  const broken = brokenAccounts(all, test === 'moves' ? 'none' : 'outcome-unknown');
  if (test === 'moves') broken.push(...brokenReport(own, all));
  const handlings = arena.handlings();
  const gaps = (after: Handling['after']) =>
    handlings.slice(1).filter((one) => one.after === after).map(({ gapMs }) => gapMs ?? NaN);
  if (handlings.some(({ epoch }, index) => index > 0 && epoch <= handlings[index - 1]!.epoch)) {
    broken.push('an epoch did not grow');
  }
  if (test === 'moves' && gaps('lost').length > 0) broken.push(`${gaps('lost').length} planned moves were crashes`);
  const p99 = percentile(gaps('unregistered'), 0.99);
  if (test === 'moves' && options.gapMs !== undefined && p99 > options.gapMs) {
    broken.push(`99 % of the gaps up to ${options.gapMs} ms: it was ${p99.toFixed(0)} ms`);
  }
  return { test, accounts: all, broken, lines: describe(arena, all, gaps, elapsedMs) };
}

/** The singleton's own records, which went with it from host to host, say the same as its journals. */
function brokenReport(own: LedgerReport, all: readonly Account[]): string[] {
  return all.flatMap(({ sender, told }) => {
    const record = own[sender];
    const whole = record?.first === 1 && record.last === told && record.count === told && record.outOfOrder === 0;
    return whole ? [] : [`sender ${sender}: told ${told}, and the singleton itself has ${JSON.stringify(record)}`];
  });
}

function readJournals(folder: string): Uint32Array[] {
  return readdirSync(folder).filter((name) => name.endsWith(journalSuffix))
    .sort((a, b) => parseInt(a) - parseInt(b))
    .map((name) => {
      const bytes = readFileSync(`${folder}/${name}`);
      return new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    });
}

function describe(
  arena: Arena,
  all: readonly Account[],
  gaps: (after: Handling['after']) => number[],
  elapsedMs: number,
): string[] {
  const sum = (field: Exclude<keyof Account, 'sender'>) => all.reduce((total, account) => total + account[field], 0);
  const fields = [
    'told',
    'acknowledged',
    'outcomeUnknown',
    'deadLettered',
    'buffered',
    'handled',
    'lost',
    'doubled',
    'reordered',
    'unaccounted',
  ] as const;
  const runtimeOf = (sender: number) => arena.nodes.find((node) => node.sender === sender)!.runtime;
  const gapLine = (what: string, values: readonly number[]) =>
    values.length === 0 ? [] : [
      `${values.length} ${what}: gap p50 ${percentile(values, 0.5).toFixed(1)} ms, p99 ${
        percentile(values, 0.99).toFixed(1)
      } ms, longest ${Math.max(...values).toFixed(1)} ms`,
    ];
  const pairs = [...runtimePairs(arena)].sort().map(([pair, count]) => `${pair} ${count}`);
  return [
    ...table([
      ['sender', ...fields],
      ...all.map((account) => [
        `${account.sender} (${runtimeOf(account.sender)})`,
        ...fields.map((field) => account[field]),
      ]),
      ['all', ...fields.map(sum)],
    ]),
    '',
    `${Math.round(sum('told') / elapsedMs * 1_000)} messages/s over ${(elapsedMs / 1_000).toFixed(1)} s`,
    ...gapLine('planned moves', gaps('unregistered')),
    ...gapLine('moves after a crash', gaps('lost')),
    `hosts in turn, from one runtime to another: ${pairs.join(', ')}`,
  ];
}

/** Which numbers each instance handled, and which ended as dead letters. */
function ranges(reports: readonly SenderReport[], journals: readonly Uint32Array[]): string[] {
  const lines: string[] = [];
  for (const { sender, dead, counters } of reports) {
    lines.push(`sender ${sender}: ${JSON.stringify(counters)}`);
    for (const { from, to, reason } of dead) lines.push(`sender ${sender}: ${from} to ${to} ${reason}`);
    for (const [index, journal] of journals.entries()) {
      const numbers = [...journal.keys()].filter((at) => at % 2 === 0 && journal[at] === sender)
        .map((at) => journal[at + 1]!);
      lines.push(
        `sender ${sender}: ${numbers[0]} to ${numbers.at(-1)} (${numbers.length}) handled by instance ${index}`,
      );
    }
  }
  return lines;
}

/** The latest that the registry saw, for a failure message. */
function trail(arena: Arena): string {
  return arena.notices.slice(-30).map((notice) => JSON.stringify(notice)).join('\n');
}
