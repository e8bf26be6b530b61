/** A node that says what a test wants it to say, on a clock of the test's own. */
import type { Cancel, Environment } from '../../src/actor/environment.ts';
import type {
  ClusterInspection,
  InspectionEvent,
  MemberReport,
  MoveOutcome,
  SingletonDetail,
} from '../../src/http/inspection.ts';

export class ManualTimers {
  now = 0;
  #due: { at: number; run: () => void }[] = [];

  set(delayMs: number, run: () => void): Cancel {
    const entry = { at: this.now + delayMs, run };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((other) => other !== entry);
    };
  }

  get armed(): number {
    return this.#due.length;
  }

  advance(ms: number): void {
    this.now += ms;
    const due = this.#due.filter((entry) => entry.at <= this.now);
    this.#due = this.#due.filter((entry) => entry.at > this.now);
    for (const entry of due) entry.run();
  }
}

export function member(address: string, more: Partial<MemberReport> = {}): MemberReport {
  return {
    address,
    uid: `uid-${address}`,
    status: 'up',
    roles: [],
    upNumber: 1,
    reachable: true,
    runtime: 'bun',
    appVersion: '1.2.3',
    ...more,
  };
}

export function singleton(name: string, more: Partial<SingletonDetail> = {}): SingletonDetail {
  return {
    name,
    role: null,
    host: 'a:1',
    state: 'hosting',
    epoch: 7,
    since: 1_000,
    lastHandOver: { from: 'b:1', to: 'a:1', durationMs: 42, gapMs: 7, epoch: 5, reason: 'planned: leave', at: 900 },
    problem: null,
    startedOn: ['a:1', 'b:1'],
    pinnedTo: null,
    active: true,
    told: 10,
    handled: 7,
    buffered: 3,
    bufferedBytes: 300,
    held: 2,
    heldBytes: 200,
    counters: { told: 10, acknowledged: 7, deadLettered: 0, outcomeUnknown: 0 },
    ...more,
  };
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export interface Fake {
  readonly inspection: Writable<ClusterInspection>;
  readonly timers: ManualTimers;
  readonly calls: string[];
  readonly logged: string[];
  emit(event: Partial<InspectionEvent>): void;
}

export function fakeInspection(change: Partial<ClusterInspection> = {}): Fake {
  const timers = new ManualTimers();
  const calls: string[] = [];
  const logged: string[] = [];
  const listeners: ((event: InspectionEvent) => void)[] = [];
  const log = (message: string) => logged.push(message);
  const environment: Pick<Environment, 'clock' | 'timers' | 'log'> = {
    clock: { now: () => timers.now, wall: () => timers.now },
    timers,
    log: { level: 'info', debug: log, info: log, warn: log, error: log },
  };
  const inspection: ClusterInspection = {
    environment,
    token: 'letmein',
    seed: () => ({
      clusterName: 'test',
      protocol: 1,
      fingerprint: 'f',
      address: 'a:1',
      uid: 'uid-a',
      clusterId: 'c',
      formedAt: 5,
      members: ['a:1', 'b:1'],
    }),
    timing: () => ({
      removalMarginMs: 2_601,
      gateWindowMs: 1_500,
      stopBoundMs: 1_000,
      stableAfterMs: 3_000,
      detectionMs: 2_000,
    }),
    readiness: () => ({ ready: true, reasons: [] }),
    members: () => ({ self: 'a:1', leader: 'a:1', members: [member('a:1'), member('b:1', { upNumber: 2 })] }),
    singletons: () => [singleton('jobs')],
    singleton: (name) => name === 'jobs' ? singleton('jobs') : undefined,
    metrics: () => [{ name: 'singlet_dead_letters_total', help: 'Dead letters.', type: 'counter', value: 4 }],
    subscribe: (listener) => {
      listeners.push(listener);
      return () => listeners.splice(listeners.indexOf(listener), 1);
    },
    leave: () => {
      calls.push('leave');
      return Promise.resolve();
    },
    down: (address) => {
      calls.push(`down ${address}`);
      return address === 'b:1' ? 'downed' : address === 'c:1' ? 'refused' : 'unknown';
    },
    move: (name, to): Promise<MoveOutcome> => {
      calls.push(`move ${name} ${to ?? ''}`);
      if (name !== 'jobs') return Promise.resolve({ kind: 'unknown-singleton' });
      if (to === 'c:1') {
        return Promise.resolve({ kind: 'refused', message: 'c:1 has not started it.', hint: 'Start it there.' });
      }
      return Promise.resolve({ kind: 'moved', from: 'a:1', to: to ?? 'b:1' });
    },
    rebalance: () => {
      calls.push('rebalance');
      return Promise.resolve({ kind: 'moved', moves: [{ singleton: 'jobs', to: 'b:1' }] });
    },
    prepareShutdown: () => {
      calls.push('prepare-shutdown');
      return Promise.resolve({ kind: 'prepared', members: ['a:1', 'b:1'] });
    },
    cancelShutdown: () => {
      calls.push('cancel-shutdown');
      return true;
    },
    ...change,
  };
  return {
    inspection,
    timers,
    calls,
    logged,
    emit: (event) => {
      for (const listener of listeners) listener({ kind: 'self-up', at: timers.now, text: 'up', ...event });
    },
  };
}

/** Reads a stream until what has come satisfies `enough`. */
export async function readUntil(response: Response, enough: (text: string) => boolean): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (reader !== undefined && !enough(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader?.releaseLock();
  return text;
}
