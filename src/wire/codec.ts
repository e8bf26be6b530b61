/**
 * Values to bytes and back: CBOR by `cbor-x/index-no-eval` (the entry that never compiles code), wrapped once.
 *
 * Arrives as what it was: null, undefined (also in arrays and objects), booleans, numbers (NaN, ±Infinity, −0), strings,
 * bigint, plain objects and arrays, Date (also invalid), Map and Set with any keys, ArrayBuffer, DataView, the eleven typed
 * arrays, RegExp (`lastIndex` 0), URL, Error and its built-in subclasses (name, message, cause, a string or number `code`,
 * the errors of an AggregateError; not the stack), actor refs where a resolver is given, classes with a `ClassCodec`.
 * `__proto__` and `constructor` are ordinary own keys. What occurs twice in one value is one thing on arrival as well.
 *
 * Arrives as something else: array holes as undefined; objects without prototype as plain objects; subclasses of Error as
 * the built-in they extend, with their name; Node's Buffer as Uint8Array; two views of one buffer as two buffers; lone
 * surrogates as U+FFFD. Left out: symbol keys, non-index properties of arrays, what is not enumerable, property flags
 * (getters are called).
 *
 * Refused with a `SerializationError` that names the field: functions, symbols as values, promises, instances of any other
 * class, cycles, more than `limits.depth` levels or `limits.itemsPerFrame` items, bigints over 250 000 hex digits; with a `MessageTooLargeError` what is
 * larger than the codec's limit when encoded.
 */
import { addExtension, Decoder, Encoder } from 'cbor-x/index-no-eval';
import { fastPaths } from '../fast_paths.ts';
import { limits } from '../limits.ts';
import { DecodeError, FrameError, MessageTooLargeError, SerializationError } from './errors.ts';
import { attempt, type ClassCodec, type RefResolver, revive, type ReviveContext } from './extension.ts';
import { Inspection } from './inspect.ts';
import { writePlain } from './plain_writer.ts';
import { Rebuild } from './rebuild.ts';
import { EXTENSION_TAG, scanItem } from './scan.ts';
import { scratchCopy } from './scratch.ts';

interface RawEncoder {
  encode(value: unknown, mode: number): Uint8Array;
  useBuffer(buffer: Uint8Array): void;
}
interface RawDecoder {
  decodeMultiple(bytes: Uint8Array, each: (value: unknown) => void): void;
}

/** The library's option to write at the same place again next time; it exports no name for it. */
const RESET_BUFFER = 1024;
/** The library keeps a buffer as large as the largest message; above this it is given back. */
const KEPT_BUFFER_BYTES = 256 * 1024;
/** Values nested deeper than this, as written with tags, might pass the receiver's depth limit: then the sender checks. */
const SAFE_DEPTH = Math.floor(limits.depth / 4) - 1;

const rawEncoder = new Encoder({ useRecords: false, tagUint8Array: false }) as unknown as RawEncoder;
const rawDecoder = new Decoder({ useRecords: false, mapsAsObjects: true, copyBuffers: true }) as unknown as RawDecoder;

/** The library's hook is global and knows no owner: this is the decode that is running. */
let reviving: ReviveContext | undefined;
addExtension(
  {
    tag: EXTENSION_TAG,
    decode(data: unknown): unknown {
      if (reviving === undefined) throw new DecodeError('an extension outside of a decode');
      return revive(data, reviving);
    },
  } as unknown as Parameters<typeof addExtension>[0],
);

/** A field or element, beside the text or bytes in it. */
const ITEM_BYTES = 8;

let encoding = false;

export interface CodecOptions {
  readonly refs?: RefResolver;
  readonly classes?: readonly ClassCodec[];
  /** Largest encoded value; default `limits.messageBytes`. */
  readonly maxBytes?: number;
}

export interface Decoded {
  readonly values: unknown[];
  /** How many items were well-formed but could not become values here. */
  readonly failed: number;
  readonly failure: string | undefined;
}

export class Codec {
  private readonly refs: RefResolver | undefined;
  private readonly maxBytes: number;
  private readonly byClass = new Map<unknown, ClassCodec>();
  private readonly byName = new Map<string, ClassCodec>();
  private readonly inspection: Inspection;
  private again: object | undefined = undefined;
  private againBytes: Uint8Array | undefined = undefined;

  constructor(options: CodecOptions = {}) {
    this.refs = options.refs;
    this.inspection = new Inspection(this.refs, this.byClass);
    this.maxBytes = options.maxBytes ?? limits.messageBytes;
    for (const codec of options.classes ?? []) this.register(codec);
  }

  /** @throws TypeError for a second codec of one class or one name */
  register(codec: ClassCodec): void {
    if (this.byClass.has(codec.Class) || this.byName.has(codec.name)) {
      throw new TypeError(`a codec for class '${codec.name}' is registered already`);
    }
    this.byClass.set(codec.Class, codec);
    this.byName.set(codec.name, codec);
  }

  /**
   * The encoded value, safe to keep.
   * @throws SerializationError
   */
  encode(value: unknown): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.encodeShared(value));
  }

  /**
   * The encoded value, in a buffer that the next encode overwrites. `maxBytes`: in place of the codec's own.
   * @throws SerializationError
   */
  encodeShared(value: unknown, maxBytes: number = this.maxBytes): Uint8Array {
    if (encoding) throw new SerializationError('', 'is being sent from inside a getter or codec of another message');
    encoding = true;
    try {
      const plain = fastPaths.plain ? writePlain(value, maxBytes) : undefined;
      if (plain !== undefined) return plain;
      const found = this.inspection;
      found.visit(value);
      if (found.bytes > maxBytes) throw new MessageTooLargeError(found.bytes, maxBytes);
      const asIs = !found.special && fastPaths.direct;
      const bytes = rawEncoder.encode(asIs ? value : new Rebuild(found).value(value), RESET_BUFFER);
      if (found.depth > SAFE_DEPTH || bytes.length > limits.itemsPerFrame) scanItem(bytes, 0, bytes.length);
      if (bytes.length > KEPT_BUFFER_BYTES) giveBackBuffer(bytes);
      if (bytes.length > maxBytes) throw new MessageTooLargeError(bytes.length, maxBytes);
      return bytes;
    } catch (error) {
      if (error instanceof SerializationError) throw error;
      if (error instanceof FrameError) {
        throw new SerializationError('', `cannot be received by anyone: ${error.message}`);
      }
      throw new SerializationError('', `cannot be encoded: ${describe(error)}`, error);
    } finally {
      encoding = false;
      this.inspection.reset();
    }
  }

  /**
   * The same for values that never change, where the one just encoded often comes again: for several receivers it is encoded
   * once for the first of them, and once for all others.
   * @throws SerializationError
   */
  encodeAgain(value: object, maxBytes: number): Uint8Array {
    if (!fastPaths.encodedOnce || this.again !== value) {
      this.again = value;
      this.againBytes = undefined;
      return this.encodeShared(value, maxBytes);
    }
    return this.againBytes ??= new Uint8Array(this.encodeShared(value, maxBytes));
  }

  /**
   * About how many bytes `value` takes, encoded or in memory, without encoding it.
   * @throws SerializationError for what could not be sent
   */
  weigh(value: unknown): number {
    const found = new Inspection(this.refs, this.byClass);
    found.visit(value);
    if (found.bytes > this.maxBytes) throw new MessageTooLargeError(found.bytes, this.maxBytes);
    return found.bytes + ITEM_BYTES * (found.items + 1);
  }

  /**
   * The value as a receiver would have it.
   * @throws SerializationError, DecodeError
   */
  copy(value: unknown): unknown {
    return this.decode(this.encode(value));
  }

  /**
   * The value in `bytes`, which may come from anywhere. It shares no memory with them.
   * @throws FrameError if they are not well-formed, DecodeError if the content cannot become a value here
   */
  decode(bytes: Uint8Array): unknown {
    const end = scanItem(bytes, 0, bytes.length);
    if (end !== bytes.length) throw new FrameError('length', `${bytes.length - end} bytes follow the value`);
    return this.decodeOne(bytes, 0, end);
  }

  /** The values of a CBOR sequence whose items end at `ends`, as found by `scanSequence`. Never throws. */
  decodeSequence(bytes: Uint8Array, start: number, ends: readonly number[]): Decoded {
    const end = ends.at(-1);
    if (end === undefined) return { values: [], failed: 0, failure: undefined };
    try {
      return { values: this.run(bytes, start, end), failed: 0, failure: undefined };
    } catch {
      return this.decodeSeparately(bytes, start, ends);
    }
  }

  /** One bad message must not cost the others of its frame. */
  private decodeSeparately(bytes: Uint8Array, start: number, ends: readonly number[]): Decoded {
    const values: unknown[] = [];
    let failed = 0;
    let failure: string | undefined;
    let from = start;
    for (const end of ends) {
      try {
        values.push(this.decodeOne(bytes, from, end));
      } catch (error) {
        failed++;
        failure ??= describe(error);
      }
      from = end;
    }
    return { values, failed, failure };
  }

  private decodeOne(bytes: Uint8Array, start: number, end: number): unknown {
    try {
      const values = this.run(bytes, start, end);
      if (values.length !== 1) throw new DecodeError(`${values.length} values in place of one`);
      return values[0];
    } catch (error) {
      throw error instanceof DecodeError ? error : new DecodeError(describe(error));
    }
  }

  private run(bytes: Uint8Array, start: number, end: number): unknown[] {
    const values: unknown[] = [];
    const outer = reviving;
    const defined = new Map<unknown, unknown>();
    const context: ReviveContext = { refs: this.refs, instance: this.instance, defined };
    reviving = context;
    try {
      // A decode inside another one finds the scratch in use. Never a Buffer: the library caches things on the view, and a
      // Buffer's slices would be Buffers.
      const source = (outer === undefined ? scratchCopy(bytes, start, end) : undefined) ??
        new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
      rawDecoder.decodeMultiple(source, (value) => {
        values.push(value);
        if (defined.size > 0) defined.clear();
      });
      return values;
    } finally {
      reviving = outer;
    }
  }

  private readonly instance = (name: string, data: unknown): unknown => {
    const codec = this.byName.get(name);
    if (codec === undefined) throw new DecodeError(`no codec for class '${name.slice(0, 100)}' is registered here`);
    return attempt(`class '${name}'`, () => codec.fromWire(data));
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Lets go of the library's grown buffer; the new one must be of the class that it allocates itself. */
function giveBackBuffer(grown: Uint8Array): void {
  const { alloc } = grown.constructor as { alloc?: (size: number) => Uint8Array };
  rawEncoder.useBuffer(alloc === undefined ? new Uint8Array(8192) : alloc(8192));
}

/** For data without refs and classes of the user: stores, tests. */
export const plainCodec: Codec = new Codec();

/** @throws SerializationError */
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  return plainCodec.encode(value);
}

/** @throws FrameError, DecodeError */
export function decode(bytes: Uint8Array): unknown {
  return plainCodec.decode(bytes);
}
