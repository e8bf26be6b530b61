/** Reads `/cluster/events`: server-sent events, resumed where the last connection ended. */
import { limits } from '../src/limits.ts';

import type { InspectionEvent } from '../src/http/mod.ts';

export type StreamEvent = InspectionEvent | { readonly kind: 'reset'; readonly text: string };

export interface StreamItem {
  readonly id: string | undefined;
  readonly event: StreamEvent;
}

/** Takes text as it comes, gives what is complete. */
export class EventParser {
  #rest = '';

  push(text: string): StreamItem[] {
    this.#rest += text;
    if (this.#rest.length > limits.frameBytes) throw new Error(`an event of more than ${limits.frameBytes} characters`);
    if (!text.includes('\n')) return [];
    const blocks = this.#rest.split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const item = readBlock(block);
      return item === undefined ? [] : [item];
    });
  }
}

function readBlock(block: string): StreamItem | undefined {
  let id: string | undefined;
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (data === '') return undefined;
  try {
    return { id, event: JSON.parse(data) as StreamEvent };
  } catch {
    return undefined;
  }
}

export interface FollowOptions {
  /** Opens the stream; a CliError of it before the first connection ends everything. */
  readonly open: (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;
  readonly replay: number;
  /** Aborted when it is enough. */
  readonly signal: AbortSignal;
  readonly onEvent: (event: StreamEvent) => void;
  /** The connection was lost and is tried again. */
  readonly onLost: (why: string) => void;
  readonly pause: (ms: number) => Promise<void>;
}

const retryMs = 1_000;
/** A node that left may come back by itself as a new member; one that has not by then is gone. */
const triesAfterLeaving = 3;

/** Until the signal, or until the node has left its cluster and is gone. Rejects only when the first connection fails. */
export async function followEvents(options: FollowOptions): Promise<void> {
  const { signal } = options;
  let lastId: string | undefined;
  let connected = false;
  let triesLeft = Infinity;
  const take = ({ id, event }: StreamItem) => {
    if (id !== undefined) lastId = id;
    triesLeft = event.kind === 'self-removed' ? triesAfterLeaving : Infinity;
    options.onEvent(event);
  };
  while (!signal.aborted && triesLeft > 0) {
    try {
      const path = lastId === undefined ? `cluster/events?replay=${options.replay}` : 'cluster/events';
      const response = await options.open(path, lastId === undefined ? {} : { 'last-event-id': lastId }, signal);
      connected = true;
      await readAll(response, signal, take);
      if (!signal.aborted) options.onLost('the connection ended');
    } catch (error) {
      if (signal.aborted) return;
      if (!connected) throw error;
      triesLeft -= 1;
      options.onLost(error instanceof Error ? error.message : String(error));
    }
    if (!signal.aborted && triesLeft > 0) await options.pause(retryMs);
  }
}

async function readAll(response: Response, signal: AbortSignal, take: (item: StreamItem) => void): Promise<void> {
  if (response.body === null) return;
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  const stop = () => void reader.cancel().catch(() => {});
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(decoder.decode(value, { stream: true })).forEach(take);
    }
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
