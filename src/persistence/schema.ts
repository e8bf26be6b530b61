/** How values are written, and how those that were written by earlier versions of a program are read. */

/**
 * Stands between an actor and its store. The version is kept beside each value, so that `read` knows what it gets. What was
 * written without a schema has version 0.
 */
export interface Schema<T> {
  /** Of what `write` makes; a whole number. Raise it with each change. */
  readonly version: number;
  /** Default: the value itself. */
  write?(value: T): unknown;
  /** Makes a present value of a stored one, of this version or any before it; others are refused. A throw fails the recovery. */
  read(stored: unknown, version: number): T;
}

export const plainSchema: Schema<any> = { version: 0, read: (stored) => stored };

export function writeWith<T>(schema: Schema<T>, value: T): unknown {
  return schema.write === undefined ? value : schema.write(value);
}

/** @throws RangeError for what a later version of the program has written: nobody here knows what it means */
export function readWith<T>(schema: Schema<T>, stored: unknown, version: number): T {
  if (version <= schema.version) return schema.read(stored, version);
  throw new RangeError(`it has schema version ${version}, and this program knows none above ${schema.version}`);
}
