/** The toy cluster with a lease: a store that is late, denies, loses answers and releases, and nodes that are cut off. */
import { defaultManagerConfig } from '../../src/singleton/manager.ts';
import type { ManagerEffect, ManagerEvent } from '../../src/singleton/manager_state.ts';
import { type ToyNode, ToyWorld } from './manager_world.ts';

interface Client {
  /** Grows with each acquire and release of the node. */
  turn: number;
  /** An acquire that has not been answered. */
  asked: number | undefined;
  /** The tenure as the node counts it. */
  held: { token: number; valid: boolean } | undefined;
}

const config = { ...defaultManagerConfig, lease: true, acquireRetryIntervalMs: 100 };

export class LeaseWorld extends ToyWorld {
  owner: string | undefined;
  token = 0;
  acquires = 0;
  denials = 0;
  losses = 0;
  readonly clients = new Map<string, Client>();
  /** Cut off: they see and hear nothing more, others have removed them, and they go on. */
  readonly cutOff = new Set<string>();

  client(node: ToyNode): Client {
    let client = this.clients.get(node.uid);
    if (!client) this.clients.set(node.uid, client = { turn: 0, asked: undefined, held: undefined });
    return client;
  }

  /** Nodes whose instance may handle a message now. */
  get handling(): ToyNode[] {
    return this.instances.filter((node) => {
      const { held } = this.client(node);
      return held?.valid === true && held.token === node.instance?.epoch;
    });
  }

  override feed(node: ToyNode, event: ManagerEvent): void {
    super.feed(node, event.kind === 'start' ? { ...event, config } : event);
  }

  override look(node: ToyNode): void {
    if (!this.cutOff.has(node.uid)) super.look(node);
  }

  override send(from: string, to: string, event: ManagerEvent): void {
    if (!this.cutOff.has(from) && !this.cutOff.has(to)) super.send(from, to, event);
  }

  override carryOut(node: ToyNode, effect: ManagerEffect): void {
    const client = this.client(node);
    switch (effect.kind) {
      case 'acquire-lease':
        this.acquires += 1;
        client.turn += 1;
        client.asked = client.turn;
        return;
      case 'release-lease':
        if (node.instance) throw new Error(`${node.uid} releases the lease of a live instance`);
        client.turn += 1;
        client.held = undefined;
        if (this.owner === node.uid && this.next() < 0.8) this.owner = undefined;
        return;
      default:
        return super.carryOut(node, effect);
    }
  }

  /** The others take this node for gone, although it lives on. */
  cut(node: ToyNode): void {
    this.cutOff.add(node.uid);
    this.truth.set(node.uid, { ...this.truth.get(node.uid)!, status: 'removed', hosting: new Map() });
  }

  /** A cut-off node notices at last. */
  notice(node: ToyNode): void {
    this.feed(node, { kind: 'self-down', why: 'lost split' });
    if (node.instance) this.end(node, node.instance.epoch, 'planned');
    this.crash(node);
    this.truth.set(node.uid, { ...this.truth.get(node.uid)!, status: 'removed' });
  }

  /** `faults`: share of answers that are wrong or lost, and of tenures that end early. */
  leaseStep(faults: number): void {
    for (const node of this.nodes.values()) {
      const client = this.client(node);
      if (client.asked !== undefined && this.next() < 0.3) this.#answer(node, client, faults);
      if (node.alive && client.held?.valid === false && this.next() < 0.3) this.#tellLost(node, client);
    }
    const owner = this.nodes.get(this.owner ?? '');
    if (!owner) return;
    const { held } = this.client(owner);
    // The term of whoever is dead or has given it up runs out; that of the living may, and then ends there first.
    if (!owner.alive || held === undefined) {
      if (this.next() < 0.05) this.owner = undefined;
    } else if (held.valid && this.next() < faults / 20) {
      held.valid = false;
    } else if (!held.valid && this.next() < 0.5) {
      this.owner = undefined;
    }
  }

  #tellLost(node: ToyNode, client: Client): void {
    this.losses += 1;
    client.held = undefined;
    this.feed(node, { kind: 'lease-lost', why: 'the term ended' });
  }

  #answer(node: ToyNode, client: Client, faults: number): void {
    const late = client.asked !== client.turn;
    client.asked = undefined;
    const refuse = (why: string) => {
      this.denials += 1;
      if (!late) this.feed(node, { kind: 'lease-denied', retryInMs: 50, why });
    };
    if (this.next() < faults / 2) return refuse('the backend is broken');
    if (this.owner !== undefined && this.owner !== node.uid) return refuse('held');
    const previous = this.token;
    this.token += 1;
    this.owner = node.uid;
    if (this.next() < faults / 2) return refuse('the answer was lost');
    if (!node.alive) return;
    if (late) return void (this.owner = undefined);
    client.held = { token: this.token, valid: true };
    this.feed(node, { kind: 'lease-granted', token: this.token, previous });
  }
}
