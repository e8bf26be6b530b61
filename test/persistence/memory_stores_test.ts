import { limits } from '../../src/limits.ts';
import { MemoryDurableStateStore } from '../../src/persistence/journal_durable_state.ts';
import { MemoryJournal } from '../../src/persistence/memory_journal.ts';
import { MemorySnapshotStore } from '../../src/persistence/memory_snapshot_store.ts';
import { Codec } from '../../src/wire/codec.ts';
import { durableStateContract } from '../contract/durable_state_contract.ts';
import { journalContract } from '../contract/journal_contract.ts';
import { snapshotStoreContract } from '../contract/snapshot_store_contract.ts';

class CountingCodec extends Codec {
  decoded = 0;

  constructor() {
    super({ maxBytes: limits.appendBytes });
  }

  override decode(bytes: Uint8Array): unknown {
    this.decoded += 1;
    return super.decode(bytes);
  }
}

journalContract('memory', async () => {
  const codec = new CountingCodec();
  const journal = new MemoryJournal({ codec });
  return { journal, reopen: undefined, taken: () => codec.decoded, end: () => journal.close() };
});

snapshotStoreContract('memory', async (keepN) => {
  const store = new MemorySnapshotStore(keepN === undefined ? {} : { keepN });
  return { store, end: () => store.close() };
}, { defaultKeepN: 0 });

durableStateContract('memory', async () => {
  const store = new MemoryDurableStateStore();
  return { store, reopen: undefined, end: () => store.close() };
});
