/**
 * The file journal beside the disk it writes to. Without arguments: how many events persistent actors write. With `fill DIR`,
 * `recover DIR` and `recover-snapshot DIR`: a history of a million events, and how long a fresh process takes for it.
 */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { openFileStores } from '../adapters/shared/file_journal/mod.ts';
import { ActorSystem } from '../src/mod.ts';
import { PersistentActor, usePersistence } from '../src/persistence/mod.ts';
import { check, emit, now, repeat, type Row } from './measure.ts';

const history = 1_000_000;
const id = 'history';
const writer = { epoch: 1, uid: 'bench', clusterId: 'bench' };
/** 100 bytes, as the record that the raw limit writes. */
const text = 'x'.repeat(88);

interface Counted {
  readonly n: number;
  readonly text: string;
}

type Command = 'write' | 'read';

class Counter extends PersistentActor<Command, Counted, number> {
  readonly persistenceId: string;

  constructor(name: string) {
    super();
    this.persistenceId = name;
  }

  initialState(): number {
    return 0;
  }

  onEvent(state: number, event: Counted): number {
    return state + event.n;
  }

  onCommand(state: number, command: Command): void | Promise<void> {
    if (command === 'read') return this.context.sender.tell(state);
    return this.persist({ n: 1, text });
  }
}

const mode = process.argv[2] ?? '';
const directory = process.argv[3] ?? '';
if (mode === '') await appends();
else if (mode === 'fill') await fill();
else await recovery(mode === 'recover-snapshot');

async function appends(): Promise<void> {
  const root = await mkdtemp(`${tmpdir()}/singlet-bench-`);
  try {
    const raw = await rawSyncs(`${root}/raw`);
    emit({ ...raw, context: true });
    const limit = { what: 'raw write and sync', value: raw.value };
    for (const [actors, each] of [[1, 300], [10, 200], [1_000, 20]] as const) {
      emit(await actorsWrite(`${root}/journal-${actors}`, actors, each, limit));
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** One record after the other, each synced: what the disk gives to somebody who waits. */
async function rawSyncs(path: string): Promise<Row> {
  const record = new TextEncoder().encode('x'.repeat(100));
  const file = await open(path, 'a');
  const count = 300;
  const row = await repeat('raw write and sync, 100 B', 'syncs/s', 5, async () => {
    const began = now();
    for (let index = 0; index < count; index += 1) {
      await file.write(record);
      await file.datasync();
    }
    return count / (now() - began) * 1_000;
  });
  await file.close();
  return row;
}

async function actorsWrite(path: string, count: number, each: number, limit: Row['limit']): Promise<Row> {
  const stores = await openFileStores(path);
  const system = ActorSystem.create('bench', { logLevel: 'warn' });
  usePersistence(system, stores);
  const names = Array.from({ length: count }, (_, index) => `counter-${index}`);
  const refs = names.map((name) => system.spawn<Command>(() => new Counter(name), name));
  const states = () => Promise.all(refs.map((ref) => ref.ask<number>('read', 120_000)));
  const before = (await states()).length;
  check(before, count, 'actors');
  let rounds = 0;
  const what = `persisted events, ${count.toLocaleString('en').replace(',', ' ')} ${count === 1 ? 'actor' : 'actors'}`;
  const row = await repeat(what, 'events/s', 5, async () => {
    rounds += 1;
    const began = now();
    for (const ref of refs) for (let index = 0; index < each; index += 1) ref.tell('write');
    const counted = (await states()).reduce((sum, state) => sum + state, 0);
    const seconds = (now() - began) / 1_000;
    check(counted, count * each * rounds, what);
    return count * each / seconds;
  }, limit);
  await system.terminate();
  await stores.close();
  return row;
}

/** Appends of one event each, many in one sync, and a snapshot 1 000 events before the end. */
async function fill(): Promise<void> {
  const stores = await openFileStores(directory);
  await stores.journal.claim(id, writer);
  const began = now();
  const group = 2_000;
  for (let seq = 0; seq < history; seq += group) {
    const writes = Array.from(
      { length: group },
      (_, index) => stores.journal.append(id, [{ payload: { n: 1, text } }], seq + index, writer),
    );
    await Promise.all(writes);
  }
  const seconds = (now() - began) / 1_000;
  emit({
    what: 'appends of one event each, 2 000 under way',
    unit: 'events/s',
    value: history / seconds,
    spread: [history / seconds, history / seconds],
  });
  await stores.close();
}

async function recovery(withSnapshot: boolean): Promise<void> {
  const began = now();
  const stores = await openFileStores(directory);
  const opened = now();
  if (withSnapshot) {
    await stores.snapshots.save(id, { sequenceNr: history - 1_000, state: history - 1_000, version: 0 });
  }
  const saved = now();
  const system = ActorSystem.create('bench', { logLevel: 'warn' });
  usePersistence(system, stores);
  const ref = system.spawn<Command>(() => new Counter(id), 'counter');
  const state = await ref.ask<number>('read', 300_000);
  const recovered = now();
  check(state, history, 'recovery');
  const peak = process.resourceUsage().maxRSS / 1_024;
  const once = (what: string, unit: string, value: number) => emit({ what, unit, value, spread: [value, value] });
  const suffix = withSnapshot ? 'with a snapshot of 1 000 before' : 'without snapshot';
  if (!withSnapshot) once('opening a journal of 1 000 000 events', 'ms', opened - began);
  once(`recovery of 1 000 000 events, ${suffix}`, 'ms', recovered - saved);
  once(`highest memory, ${suffix}`, 'MiB', peak);
  await system.terminate();
  await stores.close();
}
