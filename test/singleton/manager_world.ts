/** A toy cluster for the pure manager: views that lag, messages in any order, stops that take time, one seed. */
import type { ClusterEntry, Member, MembershipView, StartedRecord } from '../../src/cluster/member.ts';
import { compareAge } from '../../src/cluster/member.ts';
import { placeKey } from '../../src/singleton/host.ts';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEffect, ManagerEvent, ManagerState, TimerName } from '../../src/singleton/manager_state.ts';

export interface ToyNode {
  readonly uid: string;
  state: ManagerState;
  view: MembershipView;
  alive: boolean;
  instance: { epoch: number; stopping: boolean } | undefined;
  readonly timers: Set<TimerName>;
  left: boolean;
}

export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function member(uid: string, change: Partial<Member> = {}): Member {
  return {
    address: `${uid}:1`,
    uid,
    status: 'up',
    roles: [],
    upNumber: 0,
    runtime: 'memory',
    appVersion: '',
    terminated: false,
    reachable: true,
    started: new Map(),
    hosting: new Map(),
    ...change,
  };
}

export function viewOf(
  members: readonly Member[],
  selfUid: string,
  entries = new Map<string, ClusterEntry>(),
): MembershipView {
  const sorted = members.filter((one) => one.status !== 'removed').sort(compareAge);
  const self = members.find((one) => one.uid === selfUid) ?? member(selfUid, { status: 'removed' });
  return { revision: 0, clusterId: 'c', self, leader: sorted[0], members: sorted, converged: true, entries };
}

interface Flight {
  readonly to: string;
  readonly from: string;
  readonly event: ManagerEvent;
}

export class ToyWorld {
  now = 0;
  /** What is true of the membership; views copy it at random moments. */
  readonly truth = new Map<string, Member>();
  readonly nodes = new Map<string, ToyNode>();
  readonly log: string[] = [];
  /** `after`: the instance whose result it starts from. */
  readonly starts: { uid: string; epoch: number; warm: boolean; reason: string; after: string | undefined }[] = [];
  readonly #flights: Flight[] = [];
  readonly next: () => number;
  readonly entries = new Map<string, ClusterEntry>();
  readonly #record: StartedRecord;
  #age = 0;

  constructor(seed: number, placement: 'oldest' | 'spread' = 'oldest') {
    this.#record = { generation: 1, role: undefined, ...(placement === 'spread' ? { placement } : {}) };
    this.next = random(seed);
  }

  join(started: boolean): ToyNode {
    const age = (this.#age += 1);
    const uid = `n${age}`;
    const record = this.#record;
    this.truth.set(uid, member(uid, { upNumber: age, started: started ? new Map([['x', record]]) : new Map() }));
    const node: ToyNode = {
      uid,
      state: initialManager('x', uid, `${uid}:1`),
      view: this.#viewOf(uid),
      alive: true,
      instance: undefined,
      timers: new Set(),
      left: false,
    };
    // Members are numbered on convergence: until then everybody has seen it joining.
    const joining: Member = { ...this.truth.get(uid)!, status: 'joining', upNumber: 0 };
    for (const other of this.nodes.values()) {
      other.view = { ...other.view, members: [...other.view.members, joining] };
    }
    this.nodes.set(uid, node);
    if (started) this.feed(node, { kind: 'start', record, config: defaultManagerConfig });
    return node;
  }

  #viewOf(uid: string): MembershipView {
    return viewOf([...this.truth.values()], uid, new Map(this.entries));
  }

  /** The view of `node` catches up with the truth. */
  look(node: ToyNode): void {
    node.view = this.#viewOf(node.uid);
    this.feed(node, { kind: 'view' });
    for (const one of node.view.members) {
      const epoch = one.hosting.get('x')?.epoch ?? 0;
      if (one.uid !== node.uid && epoch > node.state.epochStarted) {
        this.feed(node, { kind: 'hosted-elsewhere', address: one.address, epoch });
      }
    }
  }

  leave(node: ToyNode): void {
    const now = this.truth.get(node.uid)!;
    if (now.status !== 'up') return;
    this.truth.set(node.uid, { ...now, status: 'leaving' });
    this.look(node);
    this.feed(node, { kind: 'leave' });
  }

  crash(node: ToyNode): void {
    node.alive = false;
    node.instance = undefined;
    const now = this.truth.get(node.uid)!;
    this.truth.set(node.uid, { ...now, status: 'down', terminated: true });
  }

  feed(node: ToyNode, event: ManagerEvent): void {
    if (!node.alive) return;
    const step = manage(node.state, event, node.view, this.now, 0);
    node.state = step.state;
    this.log.push(`${this.now} ${node.uid} ${event.kind} -> ${step.state.phase.kind}`);
    for (const effect of step.effects) this.carryOut(node, effect);
  }

  carryOut(node: ToyNode, effect: ManagerEffect): void {
    const from = node.uid;
    switch (effect.kind) {
      case 'request': {
        const asker = { uid: from, address: `${from}:1`, nonce: effect.nonce };
        this.send(from, effect.to.uid, { kind: 'request', asker, epoch: effect.epoch });
        return;
      }
      case 'withdraw':
        return this.send(from, effect.to.uid, { kind: 'withdrawn', uid: from, nonce: effect.nonce });
      case 'answer': {
        const { epochSeen, epochStarted } = node.state;
        const { verdict, to } = effect;
        this.send(from, to.uid, { kind: 'answer', uid: from, nonce: to.nonce, epochSeen, epochStarted, verdict });
        return;
      }
      case 'start-instance':
        if (node.instance) throw new Error(`${from} starts a second instance on itself`);
        node.instance = { epoch: effect.epoch, stopping: false };
        this.starts.push({
          uid: from,
          epoch: effect.epoch,
          warm: effect.previous?.state != null,
          reason: effect.report.reason,
          after: effect.previous && `${effect.previous.from} ${effect.previous.epoch}`,
        });
        this.truth.set(from, {
          ...this.truth.get(from)!,
          hosting: new Map([['x', { epoch: effect.epoch, plannedSince: effect.plannedSince, since: 0 }]]),
        });
        return;
      case 'stop-instance':
        if (node.instance) node.instance.stopping = true;
        else this.end(node, effect.epoch, 'planned');
        return;
      case 'kill-instance':
        return this.end(node, effect.epoch, 'planned');
      case 'set-timer':
        node.timers.add(effect.timer);
        return;
      case 'clear-timer':
        node.timers.delete(effect.timer);
        return;
      case 'leave-done':
        node.left = true;
        this.truth.set(from, { ...this.truth.get(from)!, status: 'removed' });
        return;
      case 'take-place': {
        const key = placeKey('x');
        const version = (this.entries.get(key)?.version ?? 0) + 1;
        this.entries.set(key, { key, version, by: from, value: from });
        return;
      }
      case 'acquire-lease':
      case 'release-lease':
      case 'hosted-anyway':
      case 'log':
        return;
    }
  }

  end(node: ToyNode, epoch: number, cause: 'planned' | 'died'): void {
    node.instance = undefined;
    this.feed(node, { kind: 'instance-ended', epoch, cause, watermarks: [], state: new Uint8Array([1]) });
  }

  send(from: string, to: string, event: ManagerEvent): void {
    this.#flights.push({ from, to, event });
  }

  /** One random thing happens. `loss`: share of messages that vanish. */
  step(loss: number): void {
    this.now += 10;
    const alive = [...this.nodes.values()].filter((node) => node.alive);
    const pick = this.next();
    if (pick < 0.5 && this.#flights.length > 0) {
      // Any link may be the slow one, but each keeps its order.
      const some = this.#flights[Math.floor(this.next() * this.#flights.length)]!;
      const at = this.#flights.findIndex((one) => one.from === some.from && one.to === some.to);
      const [flight] = this.#flights.splice(at, 1);
      const node = this.nodes.get(flight!.to);
      if (node && this.next() >= loss) this.feed(node, flight!.event);
      return;
    }
    const node = alive[Math.floor(this.next() * alive.length)];
    if (!node) return;
    if (pick < 0.75) return this.look(node);
    if (pick < 0.9 && node.instance?.stopping) return this.end(node, node.instance.epoch, 'planned');
    const timers = [...node.timers].filter((timer) => timer !== 'hand-over-timeout' && timer !== 'stop-timeout');
    const timer = timers[Math.floor(this.next() * timers.length)];
    if (timer === undefined || timer === 'kept') return;
    node.timers.delete(timer);
    this.feed(node, { kind: 'timer', timer });
  }

  get instances(): ToyNode[] {
    return [...this.nodes.values()].filter((node) => node.alive && node.instance);
  }
}
