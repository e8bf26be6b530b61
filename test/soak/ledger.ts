/**
 * The singleton under test: notes which numbers of which sender it has handled. In its memory, which goes with it in a
 * planned move; and in a journal, written before the handler ends and so before the acknowledgement, which a SIGKILL does
 * not take along.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { WarmHandOverActor } from '../../src/facade/mod.ts';
import { Registration } from './registration.ts';

export type LedgerMessage = { readonly sender: number; readonly n: number } | 'report';

/** What the ledger knows of one sender, since the last crash. */
export interface SenderRecord {
  readonly first: number;
  last: number;
  count: number;
  /** Numbers that did not follow on the one before. */
  outOfOrder: number;
}

export type LedgerReport = Readonly<Record<string, SenderRecord>>;

export interface LedgerSetting {
  readonly registryPort: number;
  readonly folder: string;
  /** The node it runs on. */
  readonly node: string;
}

/** `epoch.journal`: two unsigned 32-bit integers a message, sender and number, in the order handled. */
export const journalSuffix = '.journal';

export class Ledger extends WarmHandOverActor<LedgerMessage> {
  readonly #setting: LedgerSetting;
  #records: Record<string, SenderRecord> = {};
  readonly #line = new Uint32Array(2);
  #journal: number | undefined;
  #registration: Registration | undefined;

  constructor(setting: LedgerSetting) {
    super();
    this.#setting = setting;
  }

  override async preStart(): Promise<void> {
    const { registryPort, node, folder } = this.#setting;
    const epoch = this.context.epoch;
    this.#registration = await Registration.open(registryPort, node, epoch);
    this.#journal = openSync(`${folder}/${epoch}${journalSuffix}`, 'a');
  }

  override async postStop(): Promise<void> {
    if (this.#journal !== undefined) closeSync(this.#journal);
    this.#journal = undefined;
    await this.#registration?.close();
  }

  override onReceive(message: LedgerMessage): void {
    if (message === 'report') return this.context.sender.tell(this.#records);
    const { sender, n } = message;
    this.#line[0] = sender;
    this.#line[1] = n;
    writeSync(this.#journal!, this.#line);
    const record = this.#records[sender] ??= { first: n, last: n - 1, count: 0, outOfOrder: 0 };
    if (n !== record.last + 1) record.outOfOrder += 1;
    record.last = n;
    record.count += 1;
    this.#registration!.handled();
  }

  serializeForHandOver(): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.#records));
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#records = JSON.parse(new TextDecoder().decode(state)) as Record<string, SenderRecord>;
  }
}
