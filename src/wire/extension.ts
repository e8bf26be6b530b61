/**
 * Values that CBOR or the codec library cannot carry as they are travel under one private tag as `[kind, …]`.
 * Kind numbers are part of the wire format: never reused for another shape.
 */
import { DecodeError } from './errors.ts';

/** Our own extension tag. Below 3000 the decoder's table stays dense. */
export const EXTENSION_TAG = 1407;

export const kinds = {
  negativeZero: 0,
  /** [hex digits with an optional minus] */
  bigint: 1,
  /** [milliseconds]: dates too far away to survive as seconds. */
  date: 2,
  /** ['x' + text]: text that a decoder would take for one with a byte-order mark. */
  text: 3,
  /** [key, value, key, value, …]: an object with keys that must not be assigned. */
  object: 4,
  regexp: 5,
  url: 6,
  arrayBuffer: 7,
  dataView: 8,
  /** [{ class, name, message, cause?, code?, errors? }] */
  error: 9,
  /** [address, uid, path, incarnation] */
  ref: 10,
  /** [name, data]: a class with a registered codec. */
  instance: 11,
  /** [id, value]: the first occurrence of something that occurs again. */
  define: 12,
  /** [id] */
  repeat: 13,
} as const;

/** An actor ref as data: where it lives, which process that was, its path, and which actor of that path. */
export type WireRef = readonly [address: string, uid: string, path: string, incarnation: number];

/** Turns refs into data and back; given to a codec by the layer that knows refs. */
export interface RefResolver {
  /** Undefined when `value` is not a ref. */
  toWire(value: object): WireRef | undefined;
  fromWire(ref: WireRef): unknown;
}

/** Carries instances of one class. Register the same one, under the same name, on every node. */
export interface ClassCodec<C extends object = any> {
  readonly name: string;
  readonly Class: abstract new (...args: any[]) => C;
  /** Gives data that the codec can carry. */
  toWire(instance: C): unknown;
  fromWire(data: unknown): C;
}

export interface ReviveContext {
  readonly refs: RefResolver | undefined;
  /** Makes an instance of a class by the name of its codec; absent where there are no class codecs. */
  readonly instance?: (name: string, data: unknown) => unknown;
  readonly defined: Map<unknown, unknown>;
}

/** Longer ones cannot exist on every engine. */
export const MAX_BIGINT_DIGITS = 250_000;

const errorClasses: Readonly<Record<string, new (message?: string) => Error>> = Object.freeze(
  Object.assign(Object.create(null) as Record<string, new (message?: string) => Error>, {
    Error,
    EvalError,
    RangeError,
    ReferenceError,
    SyntaxError,
    TypeError,
    URIError,
  }),
);

/** The built-in class an error belongs to, by name. */
export function errorClassOf(error: Error): string {
  if (typeof AggregateError === 'function' && error instanceof AggregateError) return 'AggregateError';
  for (const name of Object.keys(errorClasses)) {
    if (name !== 'Error' && error instanceof errorClasses[name]!) return name;
  }
  return 'Error';
}

/** What an error looks like as data. The stack stays at home: it names the sender's files. */
export function errorData(error: Error): Record<string, unknown> {
  const data: Record<string, unknown> = {
    class: errorClassOf(error),
    name: String(error.name),
    message: String(error.message),
  };
  if (Object.hasOwn(error, 'cause')) data.cause = error.cause;
  const { code, errors } = error as { code?: unknown; errors?: unknown };
  if (typeof code === 'string' || typeof code === 'number') data.code = code;
  if (data.class === 'AggregateError' && Array.isArray(errors)) data.errors = [...errors];
  return data;
}

/**
 * The value behind `[kind, …]`.
 * @throws DecodeError
 */
export function revive(data: unknown, context: ReviveContext): unknown {
  if (!Array.isArray(data)) throw new DecodeError('an extension is not an array');
  const [kind, first, second] = data as unknown[];
  switch (kind) {
    case kinds.negativeZero:
      return -0;
    case kinds.bigint:
      return reviveBigint(textOf(first));
    case kinds.date:
      return new Date(numberOf(first));
    case kinds.text:
      return textOf(first).slice(1);
    case kinds.object:
      return reviveObject(data);
    case kinds.regexp:
      return attempt('regular expression', () => new RegExp(textOf(first), textOf(second)));
    case kinds.url:
      return attempt('URL', () => new URL(textOf(first)));
    case kinds.arrayBuffer:
      return bytesOf(first).buffer;
    case kinds.dataView:
      return new DataView(bytesOf(first).buffer);
    case kinds.error:
      return reviveError(first);
    case kinds.ref:
      return reviveRef(data, context);
    case kinds.instance:
      if (context.instance === undefined) throw new DecodeError('an instance of a class cannot be used here');
      return context.instance(textOf(first), second);
    case kinds.define:
      context.defined.set(numberOf(first), second);
      return second;
    case kinds.repeat:
      if (!context.defined.has(first)) throw new DecodeError('a reference to something that did not come before it');
      return context.defined.get(first);
    default:
      throw new DecodeError(`extension kind ${String(kind)} is not known here`);
  }
}

function reviveBigint(text: string): bigint {
  const match = /^(-?)([0-9a-f]+)$/.exec(text);
  if (match === null || match[2]!.length > MAX_BIGINT_DIGITS) throw new DecodeError('not a bigint');
  const magnitude = BigInt(`0x${match[2]}`);
  return match[1] === '-' ? -magnitude : magnitude;
}

function reviveObject(data: readonly unknown[]): object {
  if (data.length % 2 === 0) throw new DecodeError('an object with a key and no value');
  const object = {};
  for (let i = 1; i < data.length; i += 2) {
    Object.defineProperty(object, textOf(data[i]), {
      value: data[i + 1],
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }
  return object;
}

function reviveError(data: unknown): Error {
  if (typeof data !== 'object' || data === null) throw new DecodeError('not an error');
  const fields = data as Record<string, unknown>;
  const message = textOf(fields.message);
  const name = textOf(fields.name);
  const className = textOf(fields.class);
  let error: Error;
  if (className === 'AggregateError') {
    error = new AggregateError(Array.isArray(fields.errors) ? fields.errors : [], message);
  } else {
    error = new (errorClasses[className] ?? Error)(message);
  }
  const define = (key: string, value: unknown, enumerable = false) =>
    Object.defineProperty(error, key, { value, configurable: true, writable: true, enumerable });
  if (error.name !== name) define('name', name);
  if (Object.hasOwn(fields, 'cause')) define('cause', fields.cause);
  if (Object.hasOwn(fields, 'code')) define('code', fields.code, true);
  define('stack', `${name}: ${message}\n    at (another node)`);
  return error;
}

function reviveRef(data: readonly unknown[], context: ReviveContext): unknown {
  const [, address, uid, path, incarnation] = data;
  if (context.refs === undefined) throw new DecodeError('a ref cannot be used here');
  const wire: WireRef = [textOf(address), textOf(uid), textOf(path), numberOf(incarnation)];
  return attempt('ref', () => context.refs!.fromWire(wire));
}

/** @throws DecodeError in the place of whatever `make` throws */
export function attempt<T>(what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new DecodeError(`not a ${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new DecodeError('text expected');
  return value;
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw new DecodeError('a number expected');
  return value;
}

function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  if (!(value instanceof Uint8Array)) throw new DecodeError('bytes expected');
  return value as Uint8Array<ArrayBuffer>;
}
