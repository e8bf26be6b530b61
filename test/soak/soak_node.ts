/**
 * A node of the soak tests: may host the one `Ledger`, and with `--sender ID` tells it numbered messages. Prints the line of
 * a node when it is up, then obeys lines on its input: `load RATE`, `counters`, `report` (answers are lines `@… JSON`).
 * SIGTERM: leaves. It ends with its parent.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { runtime } from '#runtime';
import { nodeLogger } from '../../node/node_log.ts';
import { Cluster, SingletonKey } from '../../src/facade/mod.ts';
import { ActorSystem } from '../../src/mod.ts';
import { Ledger, type LedgerMessage, type LedgerReport } from './ledger.ts';
import { Load, type SenderReport } from './load.ts';

/** The role of nodes that may host. */
const hostRole = 'host';
const key: SingletonKey<LedgerMessage> = SingletonKey.of('ledger');

const { values } = parseArgs({
  args: [...runtime.args()],
  options: {
    port: { type: 'string', default: '0' },
    seeds: { type: 'string', default: '' },
    token: { type: 'string' },
    registry: { type: 'string' },
    folder: { type: 'string' },
    hosts: { type: 'boolean', default: false },
    sender: { type: 'string', default: '0' },
  },
});

const system = ActorSystem.create('soak', { logger: nodeLogger('info') });
let cluster: Cluster | undefined;
let leaving = false;

runtime.onSignal(() => {
  if (leaving) return runtime.exit(1);
  leaving = true;
  if (cluster === undefined) return runtime.exit(0);
  void cluster.leave().then(() => runtime.exit(0));
});

const joined = cluster = await Cluster.join(system, {
  port: Number(values.port),
  seeds: values.seeds === '' ? [] : values.seeds.split(','),
  roles: values.hosts ? [hostRole] : [],
  ...(values.token === undefined ? {} : { token: values.token }),
});
if (leaving) void joined.leave().then(() => runtime.exit(0));
void joined.whenEnded.then(({ why }) => {
  if (leaving) return;
  console.error(`out of the cluster: ${why}`);
  runtime.exit(1);
});

const setting = { registryPort: Number(values.registry), folder: values.folder!, node: joined.address };
const ref = joined.singleton.start(key, () => new Ledger(setting), { role: hostRole, bufferSize: 200_000 });
const counters = () => joined.singleton.find('ledger')!.proxy.stream.ledger();
const load = new Load(Number(values.sender), ref, () => counters().buffered);
system.deadLetters.subscribe((letter) => load.onDeadLetter(letter));

const input = createInterface({ input: process.stdin });
input.on('close', () => runtime.exit(2));
input.on('line', (line) => {
  const [verb, value] = line.split(' ');
  if (verb === 'load') load.run(Number(value));
  else if (verb === 'counters') {
    const { numbered, dead } = load;
    const report: SenderReport = { sender: Number(values.sender), numbered, counters: counters(), dead };
    console.log(`@counters ${JSON.stringify(report)}`);
  } else if (verb === 'report') {
    ref.ask<LedgerReport>('report', 30_000).then(
      (report) => console.log(`@report ${JSON.stringify(report)}`),
      (error) => console.log(`@report ${JSON.stringify({ error: String(error) })}`),
    );
  }
});
console.log(
  `node ${joined.address} uid ${joined.uid} on ${runtime.name} ${runtime.version}, http://${joined.address}/`,
);
