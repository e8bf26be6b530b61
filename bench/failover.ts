/** Gaps of planned moves and of crashes, ours and those of elections by a lock. Each round has processes of its own. */
import type { ChildProcess } from 'node:child_process';
import { check, median, percentile, type Row } from './measure.ts';
import type { GapResult } from './gap.ts';
import { start, startUntil } from './processes.ts';
import { type Store, stores } from './lock_stores.ts';

const rounds = 7;
const lockRounds = 5;
/** How long the sender has had replies when the host goes. */
const settleMs = 1_500;
/** A sender that has seen no new host by then fails its row. */
const gapLimitMs = 60_000;
/** Holders renew so often: the kill comes at any moment in between. */
const renewMs = 10_000 / 3;

const row = (what: string, values: readonly number[]): Row => ({
  what,
  unit: 'ms',
  value: median(values),
  spread: [Math.min(...values), percentile(values, 0.99)],
});

/** Starts the sender, ends the host `afterMs` after its first reply, and waits for what the sender saw. */
function gapOf<Result extends GapResult>(
  sender: { readonly runtime: string; readonly script: string; readonly args: readonly string[] },
  afterMs: number,
  end: () => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let result: Result | undefined;
    const child = start(sender.runtime, sender.script, sender.args, (text) => {
      if (text.startsWith('@started ')) setTimeout(end, afterMs);
      if (!text.startsWith('@gap ')) return;
      result = JSON.parse(text.slice(5)) as Result;
      child.kill('SIGKILL');
    });
    const limit = setTimeout(() => child.kill('SIGKILL'), gapLimitMs);
    child.once('close', () => clearTimeout(limit));
    child.once('close', () => result ? resolve(result) : reject(new Error(`${sender.script} ended without a gap`)));
  });
}

type Moved = GapResult & { readonly acknowledged: number; readonly outcomeUnknown: number };

/** A planned move loses nothing; after a crash every message is acknowledged, or known to be unknown. */
function verify(signal: 'SIGTERM' | 'SIGKILL', seen: Moved): void {
  check(seen.twice, 0, `${signal}: messages answered twice, where 0 were`);
  check(seen.acknowledged + seen.outcomeUnknown, seen.told, `${signal}: acknowledged or of unknown outcome`);
  if (signal === 'SIGTERM') check(seen.answered, seen.told, signal);
}

export async function moveRows(runtime: string): Promise<Row[]> {
  const gaps: Record<'SIGTERM' | 'SIGKILL', number[]> = { SIGTERM: [], SIGKILL: [] };
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (let round = 0; round < rounds; round += 1) {
      const nodes: ChildProcess[] = [];
      try {
        const [first, [address]] = await startUntil(runtime, 'bench/moves.ts', ['node'], 'node');
        nodes.push(first);
        const [second] = await startUntil(runtime, 'bench/moves.ts', ['node', address!], 'node');
        nodes.push(second);
        const sender = { runtime, script: 'bench/moves.ts', args: ['sender', address!] };
        const seen = await gapOf<Moved>(sender, settleMs, () => first.kill(signal));
        verify(signal, seen);
        gaps[signal].push(seen.ms);
      } finally {
        nodes.forEach((node) => node.kill('SIGKILL'));
      }
    }
  }
  return [
    row('planned move, gap at 1 000 msg/s', gaps.SIGTERM),
    row('kill -9 of the host, gap at 1 000 msg/s', gaps.SIGKILL),
  ];
}

/** Two candidates; the one that holds the lock is killed. */
async function electionGap(runtime: string, kind: string, folder: string, store: Store): Promise<number> {
  const candidates: ChildProcess[] = [];
  const stand = async (tag: string, onLine: (text: string) => void = () => {}): Promise<[ChildProcess, string]> => {
    const args = ['candidate', kind, folder, String(store.port)];
    const [child, [value]] = await startUntil(runtime, 'bench/elections.ts', args, tag, onLine, store.flags[runtime]);
    candidates.push(child);
    return [child, value!];
  };
  try {
    let first = '';
    const [holder] = await stand('holding', (text) => {
      if (text.startsWith('@candidate ')) first = text.split(' ')[1]!;
    });
    const [, second] = await stand('candidate');
    const sender = { runtime, script: 'bench/elections.ts', args: ['sender', first, second] };
    const seen = await gapOf(sender, settleMs + Math.random() * renewMs, () => holder.kill('SIGKILL'));
    check(seen.twice, 0, `${kind}: messages answered by two holders, where 0 were`);
    return seen.ms;
  } finally {
    candidates.forEach((candidate) => candidate.kill('SIGKILL'));
  }
}

/** None where the store or a package is missing. */
async function electionRow(runtime: string, folder: string, kind: string): Promise<Row[]> {
  const gaps: number[] = [];
  for (let round = 0; round < lockRounds; round += 1) {
    const store = await stores[kind]!(folder);
    if (typeof store === 'string') {
      console.error(`${kind} is left out: ${store}`);
      return [];
    }
    try {
      gaps.push(await electionGap(runtime, kind, folder, store));
    } finally {
      await store.close();
    }
  }
  return [{ ...row('kill -9 of the host, gap at 1 000 msg/s', gaps), peer: `${kind}, TTL 10 s` }];
}

/** Side by side, since most of their time is waiting. */
export async function electionRows(runtime: string, folder: string): Promise<Row[]> {
  return (await Promise.all(Object.keys(stores).map((kind) => electionRow(runtime, folder, kind)))).flat();
}
