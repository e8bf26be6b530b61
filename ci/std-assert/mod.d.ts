type Constructor<E> = abstract new (...args: any[]) => E;
export declare class AssertionError extends Error {}
export declare function assert(expression: unknown, message?: string): asserts expression;
export declare function assertFalse(expression: unknown, message?: string): void;
export declare function assertEquals<T>(actual: T, expected: T, message?: string): void;
export declare function assertNotEquals<T>(actual: T, expected: T, message?: string): void;
export declare function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
export declare function assertNotStrictEquals<T>(actual: T, expected: T, message?: string): void;
export declare function assertExists<T>(actual: T, message?: string): asserts actual is NonNullable<T>;
export declare function assertStringIncludes(actual: string, expected: string, message?: string): void;
export declare function assertMatch(actual: string, expected: RegExp, message?: string): void;
export declare function assertArrayIncludes<T>(actual: readonly T[], expected: readonly T[], message?: string): void;
export declare function assertInstanceOf<T>(
  actual: unknown,
  type: Constructor<T>,
  message?: string,
): asserts actual is T;
export declare function assertGreater<T>(actual: T, expected: T, message?: string): void;
export declare function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void;
export declare function assertLess<T>(actual: T, expected: T, message?: string): void;
export declare function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void;
export declare function assertThrows<E extends Error = Error>(
  run: () => unknown,
  type?: Constructor<E>,
  includes?: string,
  message?: string,
): E;
export declare function assertRejects<E extends Error = Error>(
  run: () => PromiseLike<unknown>,
  type?: Constructor<E>,
  includes?: string,
  message?: string,
): Promise<E>;
export declare function fail(message?: string): never;
export declare function unreachable(message?: string): never;
