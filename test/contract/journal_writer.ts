/** Program of the kill test: writes events of several actors as fast as it can, and says which are acknowledged. */
import { writeSync } from 'node:fs';
import process from 'node:process';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';

const actors = 6;
const [directory = '', epoch = '1'] = process.argv.slice(2);
const stores = await openFileStores(directory, { segmentBytes: 20_000 });
const { journal, snapshots } = stores;
/** Straight to the pipe: what is buffered here would be lost with the process. */
const say = (text: string) => writeSync(1, `${text}\n`);
say('open');

async function act(id: string): Promise<never> {
  const claim = await journal.claim(id, { epoch: Number(epoch), uid: `writer-${epoch}`, clusterId: 'kill-test' });
  for (let seq = claim.highestSeq;;) {
    const size = 1 + seq % 3;
    const events = Array.from({ length: size }, (_, index) => ({ payload: { id, number: seq + index + 1 } }));
    say(`try ${id} ${seq + size}`);
    await journal.append(id, events, seq, claim.writer);
    seq += size;
    say(`ack ${id} ${seq}`);
    if (seq % 50 > 2) continue;
    await snapshots.save(id, { sequenceNr: seq, state: { number: seq }, version: 0 });
    say(`snapshot ${id} ${seq}`);
  }
}

await Promise.all(Array.from({ length: actors }, (_, index) => act(`actor-${index}`)));
