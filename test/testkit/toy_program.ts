/** A toy protocol with a planted bug: whoever hears no smaller address for two seconds hosts. A cut gives two hosts. */
import type { Program, ProgramRun, RunContext } from '../../src/testkit/program.ts';
import { SimTransport } from '../../src/testkit/sim_transport.ts';
import type { SimProcess } from '../../src/testkit/sim_process.ts';
import { SimulationError } from '../../src/testkit/sim_world.ts';
import { isLink, type Link } from '../../src/transport/contract.ts';

const beatMs = 250;
const silenceMs = 2_000;

export const toyProgram: Program = { name: 'toy', create: (context) => new ToyRun(context) };

class ToyRun implements ProgramRun {
  nodes = new Map<SimProcess, ToyNode>();
  #context: RunContext;

  constructor(context: RunContext) {
    this.#context = context;
  }

  async boot(process: SimProcess): Promise<void> {
    const node = new ToyNode(process, this.#context.addresses);
    this.nodes.set(process, node);
    process.onExit(() => this.nodes.delete(process));
    await node.start();
  }

  async leave(process: SimProcess): Promise<void> {
    await this.nodes.get(process)?.stop();
  }

  check(): void {
    const hosting = [...this.nodes.values()].filter((node) => node.hosting && !node.process.suspended);
    if (hosting.length > 1) {
      throw new SimulationError('S1', `${hosting.map((node) => node.process.name).join(' and ')} host`);
    }
  }

  unsettled(): string | undefined {
    const hosting = [...this.nodes.values()].filter((node) => node.hosting);
    return hosting.length === 1 ? undefined : `${hosting.length} hosts`;
  }
}

class ToyNode {
  hosting = false;
  readonly process: SimProcess;
  #transport: SimTransport;
  #others: readonly string[];
  #links = new Map<string, Link>();
  #heard = new Map<string, number>();
  #startedAt: number;

  constructor(process: SimProcess, addresses: readonly string[]) {
    this.process = process;
    this.#others = addresses.filter((address) => address !== process.host.address);
    this.#transport = new SimTransport(process, { uid: `${process.name}-${process.incarnation}`, clusterName: 'toy' });
    this.#startedAt = process.clock.now();
  }

  async start(): Promise<void> {
    await this.#transport.start({
      accepted: (link) => void this.#links.set(link.peer.address, link),
      frame: (link) => void this.#heard.set(link.peer.address, this.process.clock.now()),
      closed: (link) => {
        if (this.#links.get(link.peer.address) === link) this.#links.delete(link.peer.address);
      },
      listenerLost: () => this.process.exit(),
    });
    this.#beat();
  }

  stop(): Promise<void> {
    this.hosting = false;
    return this.#transport.stop();
  }

  #beat(): void {
    for (const address of this.#others) {
      const link = this.#links.get(address);
      if (link !== undefined) link.send(new Uint8Array([1, 2, 3]));
      else this.#transport.dial(address, (outcome) => void (isLink(outcome) && this.#links.set(address, outcome)));
    }
    const now = this.process.clock.now();
    const smaller = this.#others.filter((address) => address < this.process.host.address);
    const silent = smaller.every((address) => now - (this.#heard.get(address) ?? this.#startedAt) > silenceMs);
    if (silent !== this.hosting) {
      this.hosting = silent;
      this.process.world.record('hosting', this.process.name, String(silent));
    }
    this.process.timers.set(beatMs, () => this.#beat());
  }
}
