/** One singleton as a caller uses it: the proxy that owns its messages, and the account of those that were not allowed. */
import type { Asks } from '../actor/ask.ts';
import type { DeadLetters } from '../actor/dead_letters.ts';
import type { Sender } from '../singleton/in_flight.ts';
import { readAcknowledge, readOpened, readRefuse } from '../singleton/messages.ts';
import { type LocalHost, SingletonProxy } from '../singleton/proxy.ts';
import type { DeliveryMode, Ledger, OverflowPolicy } from '../singleton/sender_stream.ts';
import { SingletonRef } from '../singleton/singleton_ref.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { CallerNode } from './caller_node.ts';

export interface CallerStreamPort {
  readonly node: CallerNode;
  readonly asks: Asks;
  readonly deadLetters: DeadLetters;
  connected(): boolean;
  /** Why a message may not be sent; undefined when it may. */
  forbidden(name: string, sender: Sender): string | undefined;
}

export interface StreamSettings {
  readonly bufferSize: number;
  readonly bufferBytes: number;
  readonly overflow: OverflowPolicy;
  readonly delivery: DeliveryMode;
}

const nobodyHere: LocalHost = { open: () => undefined, offer: () => 'stale' };

export class CallerStream {
  readonly name: string;
  readonly ref: SingletonRef<any>;
  readonly proxy: SingletonProxy;
  readonly #port: CallerStreamPort;
  #forbidden = 0;
  #progress = 0;

  constructor(name: string, settings: StreamSettings, port: CallerStreamPort) {
    this.name = name;
    this.#port = port;
    const { node, asks, deadLetters } = port;
    const recipient = `singleton ${name}`;
    this.proxy = new SingletonProxy({
      name,
      node,
      local: nobodyHere,
      host: () => node.memberFor(name),
      role: () => undefined,
      noHost: 'not known yet',
      senderField: (sender) => sender ?? null,
      deadLetter: (message, sender, reason, detail) =>
        deadLetters.publish({ message, sender, recipient, reason, detail }),
    });
    this.proxy.configure(settings);
    this.ref = new SingletonRef(name, {
      asks,
      log: node.environment.log,
      tell: (message, sender) => this.#tell(message, sender),
      problem: () => this.#problem(),
    });
  }

  #problem(): string {
    if (!this.#port.connected()) return 'this caller is not connected';
    if (this.#port.node.hostOf(this.name) === undefined) return 'no member has started it';
    const { buffered } = this.proxy.stream;
    return buffered === 0
      ? 'its host has handled it and did not answer, or failed at it, which its log says'
      : `its host has not handled ${buffered} messages`;
  }

  get base(): number {
    return this.proxy.stream.base;
  }

  #tell(message: unknown, sender: Sender): void {
    const detail = this.#port.forbidden(this.name, sender);
    if (detail === undefined) return this.proxy.tell(message, sender);
    this.#forbidden += 1;
    const recipient = `singleton ${this.name}`;
    this.#port.deadLetters.publish({ message, sender, recipient, reason: 'forbidden', detail });
  }

  ledger(): Ledger {
    const ledger = this.proxy.stream.ledger();
    return {
      ...ledger,
      told: ledger.told + this.#forbidden,
      deadLettered: ledger.deadLettered + this.#forbidden,
    };
  }

  /** Grows with everything that is heard from a host. */
  get progress(): number {
    return this.#progress;
  }

  /**
   * What the host at `uid` said.
   * @throws WireError
   */
  answered(uid: string, envelope: Envelope): void {
    this.#progress += 1;
    switch (envelope[0]) {
      case codes.streamOpened:
        return this.proxy.onOpened(uid, uid, readOpened(envelope));
      case codes.acknowledge: {
        const { prefix, others } = readAcknowledge(envelope);
        return this.proxy.onAcknowledge(prefix, others);
      }
      case codes.refuse: {
        const refusal = readRefuse(envelope);
        if (refusal.hint !== undefined) this.#port.node.hint(refusal.hint);
        return this.proxy.onRefuse(uid, refusal);
      }
    }
  }
}
