/**
 * What a member of a cluster may send that no honest one does: forged, stale, doubled and truncated gossip, records with
 * absurd numbers, and a peer of an older version of the protocol. None of it may change what the others conclude. (A member may mark others down, and is believed; whoever is said to leave
 * comes back as a new member: see `claims_about_self.ts`.)
 */
import { encodeGossip } from '../cluster/gossip_codec.ts';
import type { ClusterNode } from '../cluster/node.ts';
import type { Address } from '../transport/contract.ts';
import { protocolVersion } from '../transport/protocol.ts';
import { codes } from '../wire/codes.ts';
import type { Prng } from './prng.ts';
import type { SimProcess } from './sim_process.ts';
import { SimTransport } from './sim_transport.ts';
import { SimulationError } from './sim_world.ts';

/** Of a gossip message, as it travels. */
type Wire = unknown[];

export const lieKinds = [
  'stale',
  'doubled',
  'truncated',
  'short-record',
  'number',
  'last-number',
  'self-version',
  'unknown-member',
  'entry-version',
  'watch-version',
  'formed-at',
  'address',
  'speaks-for-another',
  'watches-for-another',
  'older-protocol',
] as const;

export type LieKind = typeof lieKinds[number];

/** Positions in a gossip message and in a record of it. */
const at = { formedAt: 1, lastNumber: 2, records: 3, reachability: 4, entries: 5 } as const;
const field = { uid: 0, address: 1, upNumber: 3, selfVersion: 5, roles: 6 } as const;

/** Keeps what a node could have said earlier. */
export class Liar {
  /** How often a node turned a peer of an older protocol away. */
  rejected = 0;
  #node: ClusterNode;
  #process: SimProcess;
  #random: Prng;
  #first: Wire | undefined;

  constructor(node: ClusterNode, process: SimProcess, random: Prng) {
    this.#node = node;
    this.#process = process;
    this.#random = random;
  }

  /** Sends one lie to one other member; nothing while there is none. */
  tell(kind: LieKind): void {
    const { gossip, selfUid, phase } = this.#node.membership();
    const others = [...gossip.records.values()].filter(({ uid, status }) => uid !== selfUid && status === 'up');
    if (phase !== 'member' || others.length === 0) return;
    const victim = this.#random.pick(others);
    if (kind === 'older-protocol') return this.#dialAsOlder(victim.address);
    const wire = encodeGossip(gossip, [selfUid], []) as Wire;
    this.#first ??= wire;
    for (const body of this.#bodies(kind, wire, victim.uid)) {
      this.#node.sendSystem(victim.address, [codes.gossip, body], victim.uid);
    }
  }

  /** A new process at this address, as it would be after a restart with an older version. */
  #dialAsOlder(address: Address): void {
    const { clusterName } = this.#node.settings;
    const uid = `older-${this.#random.uint32().toString(36)}`;
    const transport = new SimTransport(this.#process, { uid, clusterName, protocol: protocolVersion - 1 });
    transport.dial(address, (outcome) => {
      if (!('reason' in outcome)) {
        const text = `${address} has let in a peer of protocol ${protocolVersion - 1}`;
        this.#process.world.fail(new SimulationError('S7', text));
      } else if (outcome.reason === 'rejected') this.rejected++;
    });
  }

  #bodies(kind: Exclude<LieKind, 'older-protocol'>, wire: Wire, victim: string): Wire[] {
    const absurd = this.#random.pick([Number.MAX_SAFE_INTEGER, 2 ** 52, -1, 0.5, Number.MAX_VALUE]);
    switch (kind) {
      case 'stale':
        return [this.#first ?? wire];
      case 'doubled':
        return [wire, wire, wire];
      case 'truncated':
        return [wire.slice(0, this.#random.integer(0, wire.length - 1))];
      case 'short-record':
        return [changed(wire, victim, (record) => void record.splice(this.#random.integer(1, record.length - 1)))];
      case 'number':
        return [changed(wire, victim, (record) => void (record[field.upNumber] = absurd))];
      case 'last-number':
        return [wire.with(at.lastNumber, absurd)];
      case 'self-version':
        return [changed(wire, victim, (record) => void (record[field.selfVersion] = absurd))];
      case 'unknown-member': {
        const [record = []] = wire[at.records] as Wire[];
        const made = record.with(field.uid, `made-up-${victim}`).with(field.address, '10.9.9.9:1');
        return [wire.with(at.records, [...wire[at.records] as Wire[], made.with(field.selfVersion, absurd)])];
      }
      case 'entry-version':
        return [wire.with(at.entries, [['pin:made-up', absurd, this.#node.uid, victim]])];
      case 'watch-version':
        return [wire.with(at.reachability, [[this.#node.uid, [[victim, absurd, false]]]])];
      case 'formed-at':
        return [wire.with(at.formedAt, 1)];
      case 'address':
        return [changed(wire, victim, (record) => void (record[field.address] = '10.9.9.9:1'))];
      case 'speaks-for-another':
        return [changed(wire, victim, (record) => {
          record[field.selfVersion] = (record[field.selfVersion] as number) + this.#random.integer(0, 1);
          record[field.roles] = ['forged'];
        })];
      case 'watches-for-another': {
        const cells = (wire[at.records] as Wire[]).filter(([uid]) => uid !== victim).map(([uid]) => [uid, 99, true]);
        return [wire.with(at.reachability, [[victim, cells]])];
      }
      default:
        return kind satisfies never;
    }
  }
}

/** A copy in which one record is another one. */
function changed(wire: Wire, uid: string, change: (record: Wire) => void): Wire {
  const records = (wire[at.records] as Wire[]).map((record) => {
    if (record[field.uid] !== uid) return record;
    const copy = [...record];
    change(copy);
    return copy;
  });
  return wire.with(at.records, records);
}
