/** What the spawn program spawns: kinds, roles, names, and who can make which kind; drawn once per run. */
import type { DowningOption } from '../cluster/downing/mod.ts';
import type { ActorFactory } from '../actor/actor.ts';
import type { Address } from '../transport/contract.ts';
import type { Instance } from './instance_registry.ts';
import type { Prng } from './prng.ts';
import type { RunContext } from './program.ts';
import { Worker, type WorkerKind, type WorkerPlace } from './workload_actors.ts';

/** How actors of a kind behave; the name of each comes with its props. */
export type SpawnedKind = Omit<WorkerKind, 'role' | 'warm' | 'atLeastOnce'>;

export const spawnedKinds: readonly SpawnedKind[] = [
  { name: 'plain' },
  { name: 'slow', slowHandlerMs: 40, slowStopMs: 300 },
  { name: 'failing', failingStarts: 0.1, failingHandlers: 0.02 },
];

/** What travels with a registration. `mark` differs from call to call. */
export interface SpawnedProps {
  readonly name: string;
  readonly kind: string;
  readonly role: string | undefined;
  readonly mark: string;
}

export interface SpawnSettings {
  readonly names: readonly string[];
  readonly seeds: readonly Address[];
  readonly downing: DowningOption;
  /** By address: roles of the node, and the kinds it can make. */
  readonly nodes: ReadonlyMap<Address, { readonly roles: readonly string[]; readonly kinds: readonly string[] }>;
  readonly plannedOnly: boolean;
  /** Registrations are removed again, too. Whatever is still on its way to a singleton then may end as of unknown outcome. */
  readonly removes: boolean;
  /** Mean time between two calls of one node, and between two messages of one node to one name. */
  readonly callEveryMs: number;
  readonly tellEveryMs: number;
}

export function drawSpawns({ random, addresses, profile }: RunContext): SpawnSettings {
  const kinds = spawnedKinds.map((kind) => kind.name);
  const nodes = new Map(addresses.map((address, at) => {
    // Of a mixed cluster, one at least can make everything.
    const roles = at === 0 || random.chance(0.6) ? ['worker'] : [];
    return [address, { roles, kinds: kinds.filter(() => at === 0 || random.chance(0.75)) }];
  }));
  const all = random.chance(0.7) || addresses.length < 3;
  return {
    names: ['a', 'b', 'c', 'd', 'e'].slice(0, random.integer(2, 5)),
    seeds: all ? addresses : random.shuffled(addresses).slice(0, random.integer(2, addresses.length)),
    downing: random.chance(0.85) ? 'keep-majority' : 'keep-oldest',
    nodes,
    plannedOnly: profile.plannedOnly,
    removes: !profile.plannedOnly || random.chance(0.5),
    callEveryMs: random.between(1_500, 6_000),
    tellEveryMs: random.between(200, 900),
  };
}

/** Mostly the same kind for a name, so that calls agree; sometimes another, so that they do not. */
export function drawSpawn(
  random: Prng,
  settings: SpawnSettings,
  mark: string,
  name: string = random.pick(settings.names),
): SpawnedProps {
  const usual = settings.names.indexOf(name);
  const at = random.chance(0.75) ? usual : random.integer(0, spawnedKinds.length * 2 - 1);
  const kind = spawnedKinds[at % spawnedKinds.length]!.name;
  return { name, kind, role: at >= spawnedKinds.length ? 'worker' : undefined, mark };
}

/** What a node gives to `withKinds`. */
export function kindOption(
  kind: SpawnedKind,
  place: WorkerPlace,
  made: (instance: Instance, props: SpawnedProps) => void,
): { name: string; factory: (props: unknown) => ReturnType<ActorFactory<any>> } {
  return { name: kind.name, factory: (props) => new Spawned(kind, props as SpawnedProps, place, made) };
}

class Spawned extends Worker {
  constructor(
    kind: SpawnedKind,
    props: SpawnedProps,
    place: WorkerPlace,
    made: (instance: Instance, props: SpawnedProps) => void,
  ) {
    super({ ...kind, name: props.name }, place);
    made(this.instance, props);
  }
}
