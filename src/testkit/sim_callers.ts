/** Connections of callers from outside in the simulated network. Who they are is taken as given, and so is their grant. */
import { limits } from '../limits.ts';
import type { CallerDial, CallerLinkEvents } from '../callers/dial.ts';
import type { DialFailure, Link, LinkClose, PeerIdentity } from '../transport/contract.ts';
import { type EndOwner, SimEnd } from './sim_connection.ts';
import type { SimProcess } from './sim_process.ts';
import type { SimTransport } from './sim_transport.ts';

/** How the caller `id`, in this process, connects to the node at an address. */
export function simCallerDial(process: SimProcess, id: string): CallerDial {
  const identity: PeerIdentity = {
    address: process.host.address,
    uid: id,
    clusterName: '',
    roles: [],
    runtime: 'memory',
  };
  return (address, events) => {
    const attempt = new CallAttempt(process, events);
    process.world.network.knock(process, address, (outcome, listener) => {
      if (outcome === 'refused' || listener === undefined) return attempt.fail('refused', `${address} refused`);
      const end = attempt.dial(listener.process, listener.identity);
      if (end === undefined) return;
      const { network } = process.world;
      network.carry(process, listener.process, () => {
        const refusal = accept(listener, end, identity);
        if (refusal !== undefined) network.carry(listener.process, process, () => attempt.fail('not-ready', refusal));
      });
    });
    return () => attempt.cancel();
  };
}

/** A caller's connection reaches a process. The answer says why it is refused. */
function accept(listener: SimTransport, dialler: SimEnd, peer: PeerIdentity): string | undefined {
  const { callers, ends, process } = listener;
  const unready = callers === undefined ? 'no callers are taken here' : callers.unready();
  if (callers === undefined || unready !== undefined) return unready;
  const owner: EndOwner = {
    opened: () => {},
    frame: (link, bytes) => callers.frame(link, bytes),
    closed: (link, close) => {
      ends.delete(link);
      callers.closed(link, close);
    },
    failed: (link) => void ends.delete(link),
  };
  const { network } = process.world;
  const out = network.path(process.host, dialler.process.host);
  const end = new SimEnd({ peer, dialled: false, process, owner, connection: dialler.connection, out });
  ends.add(end);
  network.remember(end);
  end.other = dialler;
  dialler.other = end;
  dialler.awaits = undefined;
  end.state = 'open';
  end.transmit({ kind: 'open' });
  if (!callers.accepted(end, 0)) end.close(4429, 'too many callers');
  return undefined;
}

class CallAttempt implements EndOwner {
  readonly #process: SimProcess;
  readonly #events: CallerLinkEvents;
  readonly #cancelTimer: () => void;
  #end: SimEnd | undefined;
  #over = false;

  constructor(process: SimProcess, events: CallerLinkEvents) {
    this.#process = process;
    this.#events = events;
    const bound = limits.dialMs + limits.handshakeMs;
    this.#cancelTimer = process.timers.set(bound, () => this.fail('timeout', 'no answer'));
  }

  dial(listener: SimProcess, peer: PeerIdentity): SimEnd | undefined {
    if (this.#over) return undefined;
    const { network } = this.#process.world;
    const end = new SimEnd({
      peer,
      dialled: true,
      process: this.#process,
      owner: this,
      connection: network.newConnection(),
      out: network.path(this.#process.host, listener.host),
    });
    end.awaits = listener;
    network.remember(end);
    this.#end = end;
    return end;
  }

  fail(code: DialFailure['reason'] | 'not-ready', detail: string): void {
    if (this.#over) return;
    this.cancel();
    this.#events.failed({ reason: code === 'not-ready' ? 'rejected' : code, code, detail });
  }

  cancel(): void {
    this.#over = true;
    this.#cancelTimer();
    this.#end?.close(4000, 'the call was given up');
  }

  opened(end: SimEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelTimer();
    this.#events.opened(end);
  }

  frame(end: SimEnd, bytes: Uint8Array): void {
    this.#events.frame(end, bytes);
  }

  closed(end: Link, close: LinkClose): void {
    this.#events.closed(end, close);
  }

  failed(_end: SimEnd, why: string): void {
    this.fail('reset', why);
  }
}
