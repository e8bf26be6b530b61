/** The part of an actor's runtime that knows its children. */
import { type ActorOrFactory } from './actor.ts';
import type { Cell } from './cell.ts';
import { CellCore, phases } from './cell_core.ts';
import { ActorAlreadyExistsError, ActorStoppedError, ActorUsageError } from './errors.ts';
import { LocalActorRef } from './local_ref.ts';
import { checkName } from './names.ts';
import { type CellOptions, checkSpawnOptions } from './spawn_options.ts';
import type { ActorSystem } from './system.ts';

/** A chosen name, or the number that a generated one is made of: most of many anonymous actors are never called by name. */
export type ChildKey = string | number;

const noCells: readonly Cell[] = [];

export abstract class CellFamily extends CellCore {
  readonly parent: Cell | undefined;
  private readonly key: ChildKey;
  /** Made with the first child. */
  private children: Map<ChildKey, Cell> | undefined = undefined;
  private knownPath: string | undefined = undefined;

  constructor(system: ActorSystem, parent: Cell | undefined, key: ChildKey, options: CellOptions) {
    super(system, options);
    this.parent = parent;
    this.key = key;
  }

  get name(): string {
    return nameOf(this.key);
  }

  /** Made when somebody first asks: most of many actors are never called by their path. */
  get path(): string {
    return this.knownPath ??= this.parent === undefined ? `/${this.name}` : `${this.parent.path}/${this.name}`;
  }

  protected abstract createChild(
    source: ActorOrFactory<any>,
    key: ChildKey,
    options: CellOptions,
    guardian: boolean,
  ): Cell;

  get hasChildren(): boolean {
    return this.children !== undefined && this.children.size > 0;
  }

  childCells(): readonly Cell[] {
    return this.children === undefined ? noCells : [...this.children.values()];
  }

  childCell(name: string): Cell | undefined {
    return this.children?.get(keyOf(name));
  }

  /** Starts a child under a name that users may choose. */
  spawn(source: ActorOrFactory<any>, name: string, options?: CellOptions): Cell {
    checkName(name);
    return this.adopt(source, name, checkSpawnOptions(options));
  }

  spawnAnonymous(source: ActorOrFactory<any>, options?: CellOptions): Cell {
    const checked = checkSpawnOptions(options);
    const { own } = this;
    own.generated += 1;
    return this.adopt(source, own.generated, checked);
  }

  protected forgetChild(child: Cell): void {
    if (this.children?.get(child.key) === child) this.children.delete(child.key);
  }

  protected siblings(): readonly Cell[] {
    return this.parent === undefined ? noCells : this.parent.childCells().filter((cell) => cell.path !== this.path);
  }

  protected adopt(source: ActorOrFactory<any>, key: ChildKey, options: CellOptions, guardian = false): Cell {
    if (typeof source !== 'function') {
      throw new ActorUsageError(
        `spawning '${nameOf(key)}' takes a class of actors or a function that returns an actor`,
      );
    }
    if (this.phase >= phases.restarting) throw new ActorStoppedError(this.path, `spawn '${nameOf(key)}'`);
    const existing = this.children?.get(key);
    if (existing !== undefined) {
      throw new ActorAlreadyExistsError(
        existing.path,
        existing.phase >= phases.stopping ? ' and is still stopping' : '',
      );
    }
    const child = this.createChild(source, key, inherited(this.options, options), guardian);
    this.children ??= new Map();
    this.children.set(key, child);
    return child;
  }
}

function nameOf(key: ChildKey): string {
  return typeof key === 'number' ? `$${key.toString(36)}` : key;
}

/** The key of this very spelling: no other name means a number. */
function keyOf(name: string): ChildKey {
  if (!name.startsWith('$')) return name;
  const key = Number.parseInt(name.slice(1), 36);
  return nameOf(key) === name ? key : name;
}

/** What an actor may do, its children may do: no longer, and under the same epoch. */
function inherited({ gate, fenced, epoch }: CellOptions, own: CellOptions): CellOptions {
  if (gate === undefined && fenced === undefined && epoch === undefined) return own;
  return {
    ...own,
    ...(own.gate === undefined && gate !== undefined ? { gate } : {}),
    ...(own.fenced === undefined && fenced !== undefined ? { fenced } : {}),
    ...(own.epoch === undefined && epoch !== undefined ? { epoch } : {}),
  };
}

/** The cell at the end of a path below `root`. */
export function descend(root: Cell, names: readonly string[]): Cell | undefined {
  let cell: Cell | undefined = root;
  for (const name of names) cell = cell?.childCell(name);
  return cell;
}

/** Makes the one ref of a cell. */
export function refOf(cell: Cell): LocalActorRef<any> {
  return new LocalActorRef(cell.system.nextSerial(), cell);
}
