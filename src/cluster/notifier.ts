/** Tells listeners what changed: self-down at once and synchronously, everything else in a step of its own. */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { Address } from '../transport/contract.ts';
import type { MemberChange, SelfDown } from './contract.ts';
import type { Member, MembershipView } from './member.ts';

/** How a node ended. */
export interface NodeEnd {
  readonly why: string;
  /** This node did not mean to go: a new incarnation may join. */
  readonly rejoin: boolean;
  /** Addresses of the side that lives on, as far as it is known. */
  readonly via: readonly Address[];
  /** The members as this node last knew them, before it was told to go. Give the whole to a new incarnation as `previous`. */
  readonly members: readonly Member[];
}

export type ChangeListener = (view: MembershipView, changes: readonly MemberChange[]) => void;

export class Notifier {
  readonly #environment: Environment;
  readonly #view: () => MembershipView;
  readonly #changeListeners = new Set<ChangeListener>();
  readonly #selfDownListeners = new Set<(down: SelfDown) => void>();
  readonly #endListeners = new Set<(end: NodeEnd) => void>();
  #changes: MemberChange[] = [];
  #end: NodeEnd | undefined;
  #scheduled = false;

  constructor(environment: Environment, view: () => MembershipView) {
    this.#environment = environment;
    this.#view = view;
  }

  onChange(listener: ChangeListener): Cancel {
    this.#changeListeners.add(listener);
    return () => void this.#changeListeners.delete(listener);
  }

  onSelfDown(listener: (down: SelfDown) => void): Cancel {
    this.#selfDownListeners.add(listener);
    return () => void this.#selfDownListeners.delete(listener);
  }

  onEnd(listener: (end: NodeEnd) => void): Cancel {
    this.#endListeners.add(listener);
    return () => void this.#endListeners.delete(listener);
  }

  selfDown(why: string): void {
    for (const listener of [...this.#selfDownListeners]) this.#guarded('self-down', () => listener({ why }));
  }

  changed(changes: readonly MemberChange[]): void {
    if (changes.length === 0) return;
    this.#changes.push(...changes);
    this.#schedule();
  }

  ended(end: NodeEnd): void {
    this.#end = end;
    this.changed([{ kind: 'self-removed', why: end.why, rejoin: end.rejoin }]);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#environment.turns.schedule(() => {
      this.#scheduled = false;
      this.#notify();
    });
  }

  #notify(): void {
    const changes = this.#changes;
    this.#changes = [];
    const view = this.#view();
    for (const listener of [...this.#changeListeners]) this.#guarded('change', () => listener(view, changes));
    const end = this.#end;
    this.#end = undefined;
    if (end !== undefined) {
      for (const listener of [...this.#endListeners]) {
        this.#guarded('end', () => listener(end));
      }
    }
  }

  /** One failing listener must not keep the others from hearing it. */
  #guarded(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#environment.log.error(`a ${what} listener failed`, { error: String(error) });
    }
  }
}
