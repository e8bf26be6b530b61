/** A value that no log, error, inspection or JSON shows. */
export class Concealed<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return '(hidden)';
  }

  toJSON(): string {
    return '(hidden)';
  }
}
