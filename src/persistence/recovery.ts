/** Recovery: the newest snapshot that can be read, and the events after it. */
import type { Environment, Logger } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import { RecoveryError } from './errors.ts';
import type { Journal, StoredEvent } from './journal.ts';
import { planReplay, SequenceCheck } from './replay_check.ts';
import { readWith, type Schema } from './schema.ts';
import type { SnapshotDamage, SnapshotStore } from './snapshot_store.ts';
import type { Claim } from './writer.ts';

/** A state as of a sequence number. */
export interface Mark<State> {
  readonly sequenceNr: number;
  readonly state: State;
}

export interface RecoveryPort<Event, State> {
  readonly persistenceId: string;
  readonly journal: Journal;
  readonly snapshots: SnapshotStore | undefined;
  readonly environment: Environment;
  readonly log: Logger;
  readonly events: Schema<Event>;
  readonly states: Schema<State>;
  /** State that came with a planned move. */
  readonly warm: Mark<State> | undefined;
  initialState(): State;
  onEvent(state: State, event: Event): State;
  /** Throws when this actor should not go on. */
  check(): void;
}

export interface Recovered<State> extends Mark<State> {
  /** Of the snapshot it began with; 0 without one. */
  readonly snapshotSeq: number;
  readonly replayed: number;
}

/** Milliseconds of replay before others get their turn. */
const sliceMs = 2;

/** @throws RecoveryError, and whatever the stores throw */
export async function recover<Event, State>(
  port: RecoveryPort<Event, State>,
  claim: Pick<Claim, 'highestSeq' | 'deletedTo'>,
): Promise<Recovered<State>> {
  const { persistenceId, log, warm } = port;
  const damaged: number[] = [];
  let base: Mark<State> | undefined = undefined;
  if (warm !== undefined && warm.sequenceNr >= claim.deletedTo && warm.sequenceNr <= claim.highestSeq) base = warm;
  else if (warm !== undefined) {
    log.warn(`the state handed over is of number ${warm.sequenceNr}, which does not fit the journal: cold start`, {
      persistenceId,
      highestSeq: claim.highestSeq,
    });
  }
  base ??= await loadSnapshot(port, damaged);
  const plan = planReplay({
    persistenceId,
    highestSeq: claim.highestSeq,
    deletedTo: claim.deletedTo,
    snapshotSeq: base?.sequenceNr,
    damaged,
  });
  if (plan.erased && plan.to > 0) {
    log.warn('the whole history has been deleted, snapshots too: it starts anew', { persistenceId, after: plan.to });
  }
  const state = await replay(port, base === undefined ? port.initialState() : base.state, plan.from, plan.to);
  const snapshotSeq = base === warm ? 0 : base?.sequenceNr ?? 0;
  return { state, sequenceNr: plan.to, snapshotSeq, replayed: plan.to - plan.from };
}

async function loadSnapshot<Event, State>(
  port: RecoveryPort<Event, State>,
  damaged: number[],
): Promise<Mark<State> | undefined> {
  const { persistenceId, snapshots, states, log } = port;
  const snapshot = await snapshots?.loadLatest(persistenceId, (damage: SnapshotDamage) => {
    damaged.push(damage.sequenceNr);
    log.warn(`the snapshot of number ${damage.sequenceNr} cannot be read and is passed over: ${damage.detail}`, {
      persistenceId,
    });
  });
  if (snapshot === undefined) return undefined;
  const { sequenceNr, version } = snapshot;
  try {
    return { sequenceNr, state: readWith(states, snapshot.state, version) };
  } catch (error) {
    const detail = `the snapshot of number ${sequenceNr} (schema version ${version}) is not understood: ${
      String(error)
    }`;
    throw new RecoveryError(persistenceId, detail, sequenceNr, error);
  }
}

async function replay<Event, State>(
  port: RecoveryPort<Event, State>,
  start: State,
  from: number,
  to: number,
): Promise<State> {
  if (from === to) return start;
  const { persistenceId, environment } = port;
  const check = new SequenceCheck(persistenceId, from, to);
  let state = start;
  let count = 0;
  let sliceStart = environment.clock.now();
  for await (const event of port.journal.read(persistenceId, from + 1, to)) {
    check.see(event.sequenceNr);
    state = apply(port, state, event);
    count += 1;
    if (count % limits.replayBatch !== 0 && environment.clock.now() - sliceStart < sliceMs) continue;
    await new Promise<void>((resolve) => environment.turns.schedule(resolve));
    port.check();
    sliceStart = environment.clock.now();
  }
  check.end();
  return state;
}

function apply<Event, State>(port: RecoveryPort<Event, State>, state: State, stored: StoredEvent): State {
  try {
    return port.onEvent(state, readWith(port.events, stored.payload, stored.version));
  } catch (error) {
    const detail = `event ${stored.sequenceNr} (schema version ${stored.version}) failed: ${String(error)}`;
    throw new RecoveryError(port.persistenceId, detail, stored.sequenceNr, error);
  }
}
