// Where only npm is reachable, `@std/assert` (published on JSR) is stood in for by this module over node:assert.
import assertion from 'node:assert/strict';

export class AssertionError extends Error {
  name = 'AssertionError';
}

const rethrow = (run, message) => {
  try {
    return run();
  } catch (error) {
    throw new AssertionError(message ? `${message}: ${error.message}` : error.message, { cause: error });
  }
};

export function assert(expression, message = '') {
  if (!expression) throw new AssertionError(message || 'Expected a truthy value');
}
export function assertFalse(expression, message) {
  if (expression) throw new AssertionError(message || 'Expected a falsy value');
}
export function assertEquals(actual, expected, message) {
  rethrow(() => assertion.deepEqual(actual, expected), message);
}
export function assertNotEquals(actual, expected, message) {
  rethrow(() => assertion.notDeepEqual(actual, expected), message);
}
export function assertStrictEquals(actual, expected, message) {
  rethrow(() => assertion.equal(actual, expected), message);
}
export function assertNotStrictEquals(actual, expected, message) {
  rethrow(() => assertion.notEqual(actual, expected), message);
}
export function assertExists(actual, message) {
  if (actual === undefined || actual === null) throw new AssertionError(message || `Expected a value, got ${actual}`);
}
export function assertStringIncludes(actual, expected, message) {
  if (!actual.includes(expected)) {
    throw new AssertionError(message || `Expected ${JSON.stringify(actual)} to include ${JSON.stringify(expected)}`);
  }
}
export function assertMatch(actual, expected, message) {
  if (!expected.test(actual)) {
    throw new AssertionError(message || `Expected ${JSON.stringify(actual)} to match ${expected}`);
  }
}
export function assertArrayIncludes(actual, expected, message) {
  for (const item of expected) {
    if (!actual.some((candidate) => rethrowless(() => assertion.deepEqual(candidate, item)))) {
      throw new AssertionError(message || 'Expected the array to include every given item');
    }
  }
}
const rethrowless = (run) => {
  try {
    run();
    return true;
  } catch {
    return false;
  }
};
export function assertInstanceOf(actual, type, message) {
  if (!(actual instanceof type)) throw new AssertionError(message || `Expected an instance of ${type.name}`);
}
export function assertGreater(actual, expected, message) {
  if (!(actual > expected)) throw new AssertionError(message || `Expected ${actual} > ${expected}`);
}
export function assertGreaterOrEqual(actual, expected, message) {
  if (!(actual >= expected)) throw new AssertionError(message || `Expected ${actual} >= ${expected}`);
}
export function assertLess(actual, expected, message) {
  if (!(actual < expected)) throw new AssertionError(message || `Expected ${actual} < ${expected}`);
}
export function assertLessOrEqual(actual, expected, message) {
  if (!(actual <= expected)) throw new AssertionError(message || `Expected ${actual} <= ${expected}`);
}
const checkError = (error, type, includes, message) => {
  if (type && !(error instanceof type)) {
    throw new AssertionError(
      `${message ?? 'Wrong error'}: expected ${type.name}, got ${error?.constructor?.name}: ${error?.message}`,
    );
  }
  if (includes && !String(error?.message).includes(includes)) {
    throw new AssertionError(
      `${message ?? 'Wrong error'}: expected a message with ${JSON.stringify(includes)}, got ${
        JSON.stringify(error?.message)
      }`,
    );
  }
  return error;
};
export function assertThrows(run, type, includes, message) {
  let thrown;
  try {
    run();
  } catch (error) {
    thrown = { error };
  }
  if (!thrown) throw new AssertionError(message || 'Expected the function to throw');
  return checkError(thrown.error, type, includes, message);
}
export async function assertRejects(run, type, includes, message) {
  let thrown;
  try {
    await run();
  } catch (error) {
    thrown = { error };
  }
  if (!thrown) throw new AssertionError(message || 'Expected the function to reject');
  return checkError(thrown.error, type, includes, message);
}
export function fail(message) {
  throw new AssertionError(message || 'Failed');
}
export function unreachable(message) {
  throw new AssertionError(message || 'Unreachable');
}
