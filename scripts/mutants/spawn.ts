/** Deliberate faults in the registration of spawned singletons (rule 19). */
import type { Mutant } from './mutant.ts';

export const spawnMutants: readonly Mutant[] = [
  {
    name: 'registered-without-a-majority',
    rule: 19,
    what: 'a registration counts as safe when the leader alone has it',
    file: 'src/singleton/spawn_majority.ts',
    find: 'if (isQuorum(this.#node.view(), uids)) end(true);',
    replace: 'end(true);',
    program: 'spawn',
    profiles: ['partition', 'crash', 'mixed', 'flap'],
  },
  {
    name: 'two-names-for-one-kind',
    rule: 19,
    what: 'the leader registers a second name for a kind and role',
    file: 'src/singleton/spawn_decision.ts',
    find: 'const winner = all.find(same);',
    replace: 'const winner = all.find((one) => same(one) && one.name === wanted.name);',
    program: 'spawn',
    profiles: ['calm', 'mixed'],
  },
  {
    name: 'registered-anew-runs-on',
    rule: 19,
    what: 'a node that has missed a removal goes on with what was registered before',
    file: 'src/singleton/spawned_set.ts',
    find: 'if (now?.version === entry.version && now.by === entry.by) continue;',
    replace: 'if (readRegistration(now) !== undefined) continue;',
    program: 'spawn',
    profiles: ['pause', 'links', 'mixed'],
  },
];
