/** Program of the trace test: appends one event after the other, says so after each, and saves a snapshot. */
import { writeSync } from 'node:fs';
import process from 'node:process';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';

const [directory = ''] = process.argv.slice(2);
const stores = await openFileStores(directory);
const { writer } = await stores.journal.claim('a', { epoch: 1, uid: 'u', clusterId: 'c' });
for (let seq = 0; seq < 20; seq += 1) {
  await stores.journal.append('a', [{ payload: seq }], seq, writer);
  writeSync(1, `ack ${seq + 1}\n`);
}
await stores.snapshots.save('a', { sequenceNr: 20, state: 20, version: 0 });
await stores.close();
