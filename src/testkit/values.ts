/** Comparing and showing the values that messages are made of. */

/** Equal value by value: plain objects, arrays, Map, Set, Date, bytes, bigint, NaN. Other objects by identity. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return Object.is(a.getTime(), (b as Date).getTime());
  if (ArrayBuffer.isView(a)) return sameBytes(a, b as ArrayBufferView);
  if (a instanceof Map) return sameEntries(a, b as Map<unknown, unknown>);
  if (a instanceof Set) return a.size === (b as Set<unknown>).size && sameValue([...a], [...(b as Set<unknown>)]);
  if (Array.isArray(a)) {
    return a.length === (b as unknown[]).length && a.every((item, i) => sameValue(item, (b as unknown[])[i]));
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameValue(field(a, key), field(b, key)));
}

function field(value: object, key: string): unknown {
  return (value as Record<string, unknown>)[key];
}

function sameBytes(a: ArrayBufferView, b: ArrayBufferView): boolean {
  if (a.byteLength !== b.byteLength) return false;
  const left = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
  const right = new Uint8Array(b.buffer, b.byteOffset, b.byteLength);
  return left.every((byte, i) => byte === right[i]);
}

function sameEntries(a: Map<unknown, unknown>, b: Map<unknown, unknown>): boolean {
  return a.size === b.size && sameValue([...a.entries()], [...b.entries()]);
}

/** A short text for any value; never throws. */
export function showValue(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof Uint8Array) return `bytes(${value.length})`;
  if (typeof value === 'string') return value;
  try {
    const text = JSON.stringify(value, (_key, inner) => {
      if (typeof inner === 'bigint') return `${inner}n`;
      if (inner instanceof Map || inner instanceof Set) return [...inner];
      return inner instanceof Uint8Array ? `bytes(${inner.length})` : inner;
    });
    return text === undefined ? String(value) : text;
  } catch {
    return String(value);
  }
}
