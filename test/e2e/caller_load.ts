/** What the callers of `callers_test.ts` do, on whatever they run: tell numbered messages at a steady pace, and account. */
import { type Caller, connect, type Ledger, SingletonKey } from '../../src/callers/mod.ts';

export type RoomMessage = 'where' | { readonly from: string; readonly n: number };

export interface LoadOptions {
  readonly from: string;
  readonly urls: readonly string[];
  readonly token: string;
  readonly count: number;
  readonly everyMs: number;
  /** Told of the node it is connected to, at first and after each change. */
  readonly onUrl?: (url: string) => void;
}

export interface LoadReport {
  readonly from: string;
  readonly ledger: Ledger;
  /** The numbers of messages that became dead letters, with the reasons. */
  readonly dead: readonly (readonly [n: number, reason: string])[];
  /** Connections after the first. */
  readonly reconnects: number;
  readonly host: string;
}

const room = SingletonKey.of<RoomMessage>('room');

export async function runLoad({ from, urls, token, count, everyMs, onUrl }: LoadOptions): Promise<LoadReport> {
  const caller: Caller = await connect(urls, { token, connectTimeoutMs: 30_000, closeTimeoutMs: 60_000 });
  const ref = caller.singleton.ref(room);
  const dead: [number, string][] = [];
  let reconnects = 0;
  onUrl?.(caller.url ?? '');
  caller.subscribe((event) => {
    if (event.kind !== 'connected') return;
    reconnects += 1;
    onUrl?.(event.url);
  });
  caller.deadLetters.subscribe(({ message, reason }) => {
    const { n } = message as { n?: number };
    if (n !== undefined) dead.push([n, reason]);
  });
  for (let n = 1; n <= count; n += 1) {
    ref.tell({ from, n });
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  let host = '';
  for (let tries = 0; host === '' && tries < 20; tries += 1) {
    host = await ref.ask<string>('where', 5_000).catch(() => '');
  }
  // Waits until everything is settled.
  await caller.close();
  return { from, ledger: caller.ledger(room), dead, reconnects, host };
}
