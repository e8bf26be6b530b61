/** A deliberate fault: a patch of the source that the simulator must find. Production code has no switches for them. */

interface Edit {
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant extends Edit {
  readonly name: string;
  /** The rule of the protocol that it breaks. */
  readonly rule: number;
  readonly what: string;
  readonly file: string;
  /** A second edit of the same file. */
  readonly also?: Edit;
  /** Where it is looked for; default: the program `singletons`, in all profiles by turns. */
  readonly program?: string;
  readonly profiles?: readonly string[];
}

/** @throws Error when a text does not occur, or more than once. */
export function mutated(mutant: Mutant, source: string): string {
  let text = source;
  for (const { find, replace } of mutant.also === undefined ? [mutant] : [mutant, mutant.also]) {
    const parts = text.split(find);
    if (parts.length !== 2) {
      throw new Error(`mutant ${mutant.name}: ${parts.length - 1} places in ${mutant.file} match, not one: ${find}`);
    }
    text = parts.join(replace);
  }
  return text;
}
