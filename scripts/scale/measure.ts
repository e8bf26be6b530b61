/** One size of cluster: at rest, through one change, and while a tenth of it leaves. */
import { ScaleCluster } from './cluster.ts';

export interface Cost {
  /** Of one node, in one second. */
  readonly frames: number;
  readonly bytes: number;
}

export interface ScaleRow {
  readonly members: number;
  readonly rest: Cost;
  /** One member changed its record: milliseconds until every node has it, and until the leader knows that. */
  readonly change: { readonly everybodyMs: number; readonly leaderMs: number; readonly bytesPerNode: number };
  /** A tenth leaves at once: until it is removed everywhere. Undefined: not measured. */
  readonly leave:
    | { readonly leavers: number; readonly ms: number; readonly cost: Cost; readonly bytesPerNode: number }
    | undefined;
}

const settleMs = 3_000;
const restMs = 5_000;

export async function scaleRow(members: number, withLeaves: boolean): Promise<ScaleRow> {
  const cluster = await ScaleCluster.form(members);
  const { world } = cluster;
  await world.advance(settleMs);
  const rest = await cluster.traffic(() => world.advance(restMs));
  const change = await changeOf(cluster);
  const leave = withLeaves ? await leaveOf(cluster) : undefined;
  return { members, rest: costOf(rest, members), change, leave };
}

function costOf({ frames, bytes, ms }: { frames: number; bytes: number; ms: number }, members: number): Cost {
  return { frames: frames / members / (ms / 1_000), bytes: bytes / members / (ms / 1_000) };
}

async function changeOf(cluster: ScaleCluster): Promise<ScaleRow['change']> {
  const { nodes, world } = cluster;
  const member = nodes.at(-1);
  const start = world.now;
  const has = (node: (typeof nodes)[number]): boolean =>
    node.view().members.some(({ uid, started }) => uid === member?.uid && started.has('scale'));
  let everybodyMs = 0;
  const traffic = await cluster.traffic(async () => {
    member?.publish({ started: new Map([['scale', { generation: 1, role: undefined }]]) });
    if (!await cluster.until(() => nodes.every(has), 60_000)) throw new Error('a change did not reach everybody');
    everybodyMs = world.now - start;
    const leader = nodes.find((node) => node.view().leader?.uid === node.uid);
    if (!await cluster.until(() => leader?.view().converged === true, 60_000)) throw new Error('not converged');
  });
  return { everybodyMs, leaderMs: world.now - start, bytesPerNode: traffic.bytes / nodes.length };
}

async function leaveOf(cluster: ScaleCluster): Promise<ScaleRow['leave']> {
  const { nodes, world } = cluster;
  const leavers = Math.max(1, Math.round(nodes.length / 10));
  const stay = nodes.slice(0, -leavers);
  await world.advance(settleMs);
  const traffic = await cluster.traffic(async () => {
    for (const node of nodes.slice(-leavers)) void node.leave();
    const gone = () => stay.every((node) => node.view().members.length === stay.length);
    if (!await cluster.until(gone, 120_000)) throw new Error('a tenth did not leave');
  });
  return {
    leavers,
    ms: traffic.ms,
    cost: costOf(traffic, nodes.length),
    bytesPerNode: traffic.bytes / nodes.length,
  };
}
