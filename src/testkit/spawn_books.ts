/**
 * The outside witness of registrations (rule 19). Whoever was told "registered" or "removed" holds a promise:
 * 1. No node ever knows two registrations of one kind and role.
 * 2. What was promised, and what nobody has asked to be otherwise since, is so as long as no more than half of those that were
 *    up when everybody last knew it have been lost. Leaving is not being lost.
 * A call that failed for want of an answer may still take effect, so that its name promises nothing for a while.
 */
import type { MembershipView } from '../cluster/member.ts';
import { readRegistration, registrations, spawnKey } from '../singleton/spawn_registration.ts';
import { SimulationError } from './sim_world.ts';
import type { SpawnedProps } from './spawn_load.ts';

/** A node that runs, as the books see it. */
export interface BookedNode {
  readonly name: string;
  readonly uid: string;
  readonly view: MembershipView;
}

interface Standing {
  readonly name: string;
  /** Undefined: removed. */
  readonly registered: Pick<SpawnedProps, 'kind' | 'role'> | undefined;
  readonly clusterId: string;
  /** Those that were up when it was promised, or when all of them were last seen to know it. */
  uids: readonly string[];
}

/** All calls about one name. */
interface Calls {
  spawns: number;
  spawning: number;
  removals: number;
  removing: number;
  /** A spawn has failed for want of an answer: the leader may still get to it. */
  unsureSpawn: boolean;
  /** A removal has: some node may still spread it. */
  unsureRemoval: boolean;
}

/** The end of a call: `unsure` when nobody knows what came of it. */
export type CallEnd = 'done' | 'refused' | 'unsure';

export class SpawnBooks {
  readonly statistics = { promised: 0, removed: 0, checked: 0, excused: 0 };
  #standing = new Map<string, Standing>();
  #lost = new Set<string>();
  #calls = new Map<string, Calls>();

  /** A call begins; call the result with its end, and the view of its node then. */
  spawning({ name, kind, role }: SpawnedProps): (end: CallEnd, view: MembershipView) => void {
    const calls = this.#of(name);
    calls.spawns++;
    calls.spawning++;
    this.#withdraw((one) => one.name === name && one.registered === undefined);
    const { removals } = calls;
    return (end, view) => {
      calls.spawning--;
      if (end === 'unsure') calls.unsureSpawn = true;
      if (end !== 'done') return;
      this.statistics.promised++;
      if (removals === calls.removals && calls.removing === 0 && !calls.unsureRemoval) {
        this.#promise(name, { kind, role }, view);
      }
    };
  }

  removing(name: string): (end: CallEnd, view: MembershipView) => void {
    const calls = this.#of(name);
    const { spawns } = calls;
    const alone = calls.spawning === 0 && !calls.unsureSpawn;
    calls.removals++;
    calls.removing++;
    this.#withdraw((one) => one.name === name);
    return (end, view) => {
      calls.removing--;
      if (end === 'unsure') calls.unsureRemoval = true;
      if (end !== 'done') return;
      this.statistics.removed++;
      if (alone && spawns === calls.spawns) this.#promise(name, undefined, view);
    };
  }

  /** This member was killed, or removed against its will. */
  lost(uid: string): void {
    this.#lost.add(uid);
  }

  /** Now and then, with every node that runs. */
  audit(nodes: readonly BookedNode[]): void {
    for (const node of nodes) this.#checkOnePerKind(node);
    for (const [name, calls] of this.#calls) {
      const versions = new Set(nodes.map(({ view }) => view.entries.get(spawnKey(name))?.version));
      if (calls.removing === 0 && versions.size === 1) calls.unsureRemoval = false;
    }
    for (const standing of this.#standing.values()) {
      const inside = nodes.filter(({ view }) => view.clusterId === standing.clusterId && view.self.status === 'up');
      if (inside.length === 0 || !inside.every(({ view }) => holds(view, standing))) continue;
      standing.uids = inside.map((node) => node.uid);
    }
  }

  /** All nodes agree: everything that stands must be so. */
  finish(view: MembershipView): void {
    for (const standing of this.#standing.values()) {
      const lost = standing.uids.filter((uid) => this.#lost.has(uid)).length;
      if (holds(view, standing)) this.statistics.checked++;
      else if (standing.clusterId !== view.clusterId || lost > Math.floor(standing.uids.length / 2)) {
        this.statistics.excused++;
      } else broken(`${describe(standing)}; only ${lost} of ${standing.uids.length} members were lost`);
    }
  }

  #of(name: string): Calls {
    let calls = this.#calls.get(name);
    if (calls === undefined) {
      calls = { spawns: 0, spawning: 0, removals: 0, removing: 0, unsureSpawn: false, unsureRemoval: false };
      this.#calls.set(name, calls);
    }
    return calls;
  }

  #promise(name: string, registered: Standing['registered'], { clusterId, members }: MembershipView): void {
    if (clusterId === undefined) return;
    const uids = members.filter((member) => member.status === 'up').map((member) => member.uid);
    this.#standing.set(`${clusterId}/${name}`, { name, registered, clusterId, uids });
  }

  #withdraw(which: (standing: Standing) => boolean): void {
    for (const [key, standing] of this.#standing) if (which(standing)) this.#standing.delete(key);
  }

  #checkOnePerKind({ name, view }: BookedNode): void {
    const names = new Map<string, string>();
    for (const one of registrations(view)) {
      const identity = `${one.kind}/${one.role ?? ''}`;
      const other = names.get(identity);
      if (other !== undefined) broken(`${name} knows ${other} and ${one.name} of kind and role ${identity}`);
      names.set(identity, one.name);
    }
  }
}

function holds(view: MembershipView, { name, registered }: Standing): boolean {
  const found = readRegistration(view.entries.get(spawnKey(name)));
  return found?.kind === registered?.kind && found?.role === registered?.role;
}

function describe({ name, registered }: Standing): string {
  if (registered === undefined) return `the removal of ${name} was promised, and it is registered`;
  return `the registration of ${name} (${registered.kind}, role ${registered.role ?? 'none'}) was promised and is gone`;
}

function broken(what: string): never {
  throw new SimulationError('R19', what);
}
