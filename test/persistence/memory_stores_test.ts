import { MemoryDurableStateStore } from '../../src/persistence/journal_durable_state.ts';
import { MemoryJournal } from '../../src/persistence/memory_journal.ts';
import { MemorySnapshotStore } from '../../src/persistence/memory_snapshot_store.ts';
import { durableStateContract } from '../contract/durable_state_contract.ts';
import { journalContract } from '../contract/journal_contract.ts';
import { snapshotStoreContract } from '../contract/snapshot_store_contract.ts';

journalContract('memory', async () => {
  const journal = new MemoryJournal();
  return { journal, reopen: undefined, end: () => journal.close() };
});

snapshotStoreContract('memory', async (keepN) => {
  const store = new MemorySnapshotStore(keepN === undefined ? {} : { keepN });
  return { store, end: () => store.close() };
}, { defaultKeepN: 0 });

durableStateContract('memory', async () => {
  const store = new MemoryDurableStateStore();
  return { store, reopen: undefined, end: () => store.close() };
});
