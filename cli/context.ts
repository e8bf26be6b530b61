/** What a command gets: its flags, a way to the node, and where to print. */
import type { NodeClient } from './node_client.ts';
import type { Terminal } from './output.ts';

export interface CommandContext {
  readonly operands: readonly string[];
  readonly flags: ReadonlyMap<string, unknown>;
  readonly json: boolean;
  readonly terminal: Terminal;
  /** Of commands that ask a node. */
  readonly node: NodeClient;
  /** Milliseconds that only grow. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wall: () => number;
  readonly pause: (ms: number) => Promise<void>;
  /** Aborted by Ctrl-C. */
  readonly interrupted: AbortSignal;
}

export function flag<T>(context: CommandContext, name: string): T | undefined {
  return context.flags.get(name) as T | undefined;
}

const pollMs = 250;

/**
 * Asks again and again until `done` gives a value, for at most `waitMs`; undefined when the time is up. Between two tries
 * `progress` shows what is missing, which `done` puts into the note.
 */
export async function waitUntil<T>(
  context: CommandContext,
  waitMs: number,
  done: (note: (text: string) => void) => Promise<T | undefined>,
): Promise<T | undefined> {
  const end = context.now() + waitMs;
  try {
    for (;;) {
      const value = await done((text) => waitMs > 0 && context.terminal.progress(text));
      if (value !== undefined) return value;
      const left = end - context.now();
      if (left <= 0 || context.interrupted.aborted) return undefined;
      await context.pause(Math.min(pollMs, left));
    }
  } finally {
    context.terminal.progress('');
  }
}
