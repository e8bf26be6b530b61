import { assert, assertEquals, assertGreater, assertLess } from '@std/assert';
import { describe, test } from 'node:test';
import type { SimProcess } from '../../src/testkit/sim_process.ts';
import { SimTransport } from '../../src/testkit/sim_transport.ts';
import { World } from '../../src/testkit/sim_world.ts';
import { type DialFailure, isLink, type Link } from '../../src/transport/contract.ts';

interface Node {
  readonly process: SimProcess;
  readonly transport: SimTransport;
  readonly log: string[];
  readonly links: Link[];
}

class Net {
  readonly world: World;
  readonly nodes = new Map<string, Node>();

  constructor(seed: number | string = 1, secrets: Record<string, string> = {}) {
    this.world = new World({ seed });
    for (const n of [1, 2, 3]) {
      this.world.addHost(`n${n}`, `10.0.0.${n}:1`, (process) => this.#boot(process, secrets[`n${n}`]));
    }
  }

  async start(): Promise<this> {
    for (const host of this.world.hosts) this.world.start(host);
    await this.world.advance(10);
    return this;
  }

  node(name: string): Node {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(name);
    return node;
  }

  async dial(from: string, to: string, withinMs = 10_000): Promise<Link | DialFailure> {
    let outcome: Link | DialFailure | undefined;
    this.node(from).transport.dial(this.world.host(to).address, (result) => outcome = result);
    await this.world.advanceUntil(() => outcome !== undefined, withinMs);
    if (outcome === undefined) throw new Error('the dial was never answered');
    await this.world.advance(10);
    return outcome;
  }

  async link(from: string, to: string): Promise<Link> {
    const outcome = await this.dial(from, to);
    if (!isLink(outcome)) throw new Error(outcome.detail);
    return outcome;
  }

  async #boot(process: SimProcess, secret: string | undefined): Promise<void> {
    const log: string[] = [];
    const links: Link[] = [];
    const uid = `${process.name}.${process.incarnation}`;
    const transport = new SimTransport(process, {
      uid,
      clusterName: 'net',
      secret: secret ?? 's',
      seedAnswer: () => ({
        clusterName: 'net',
        protocol: 1,
        fingerprint: '',
        address: process.host.address,
        uid,
        clusterId: undefined,
        formedAt: undefined,
        members: [],
      }),
    });
    this.nodes.set(process.name, { process, transport, log, links });
    await transport.start({
      accepted: (link) => {
        links.push(link);
        log.push(`accepted ${link.peer.uid}`);
      },
      frame: (_link, bytes) => void log.push(`frame ${bytes.join('.')}`),
      closed: (_link, close) => void log.push(`closed ${close.code} ${close.clean}`),
      listenerLost: () => void log.push('listener lost'),
    });
  }
}

const frame = (...bytes: number[]) => new Uint8Array(bytes);

describe('simulated network', () => {
  test('a link carries frames in order, both ways, and the frame is a copy', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    assertEquals(link.peer.uid, 'n2.1');
    const bytes = frame(0, 0);
    for (let i = 0; i < 200; i++) {
      bytes[0] = i;
      link.send(bytes);
    }
    net.node('n2').links[0]?.send(frame(9));
    await net.world.advance(2_000);
    const got = net.node('n2').log.filter((line) => line.startsWith('frame'));
    assertEquals(got, Array.from({ length: 200 }, (_, i) => `frame ${i}.0`));
    assertEquals(net.node('n1').log, ['frame 9']);
  });

  test('a dial to nobody is refused, into a cut or to a silent machine it times out', async () => {
    const net = await new Net().start();
    net.world.crash('n2');
    net.world.crash('n3', { power: true });
    const refused = await net.dial('n1', 'n2');
    const silent = await net.dial('n1', 'n3');
    assert(!isLink(refused) && refused.reason === 'refused');
    assert(!isLink(silent) && silent.reason === 'timeout');
    net.world.restart('n2');
    await net.world.advance(10);
    net.world.partition(['n1'], ['n2'], { oneWay: true });
    for (const [from, to] of [['n1', 'n2'], ['n2', 'n1']] as const) {
      const cut = await net.dial(from, to);
      assert(!isLink(cut) && cut.reason === 'timeout', `${from} to ${to}`);
    }
  });

  test('a wrong secret and the own address are rejected', async () => {
    const net = await new Net(1, { n2: 'other' }).start();
    for (const to of ['n2', 'n1']) {
      const outcome = await net.dial('n1', to);
      assert(!isLink(outcome) && outcome.reason === 'rejected');
    }
    assertEquals(net.node('n2').log, []);
  });

  test('a paused process still takes connections: probes are open, handshakes hang', async () => {
    const net = await new Net().start();
    net.world.pause('n2');
    let probed = '';
    net.node('n1').transport.probe('10.0.0.2:1', (outcome) => probed = outcome);
    const outcome = await net.dial('n1', 'n2');
    assertEquals(probed, 'open');
    assert(!isLink(outcome) && outcome.reason === 'timeout');
  });

  test('a cut holds frames; a heal that delivers keeps their order, with those sent later behind', async () => {
    for (const seed of ['a', 'b', 'c', 'd', 'e']) {
      const net = await new Net(seed).start();
      const link = await net.link('n1', 'n2');
      net.world.partition(['n1'], ['n2']);
      for (let i = 0; i < 5; i++) {
        link.send(frame(i));
        await net.world.advance(300);
      }
      assertEquals(net.node('n2').log.filter((line) => line.startsWith('frame')), []);
      link.send(frame(5));
      net.world.heal('deliver');
      for (let i = 6; i < 20; i++) {
        link.send(frame(i));
        await net.world.advance(100);
      }
      await net.world.advance(3_000);
      const got = net.node('n2').log.filter((line) => line.startsWith('frame'));
      assertEquals(got, Array.from({ length: 20 }, (_, i) => `frame ${i}`));
    }
  });

  test('a heal that resets closes both ends, uncleanly', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    net.world.partition(['n1'], ['n2']);
    link.send(frame(1));
    await net.world.advance(1_000);
    net.world.heal('reset');
    await net.world.advance(1_000);
    assertEquals(net.node('n1').log, ['closed 1006 false']);
    assertEquals(net.node('n2').log, ['accepted n1.1', 'closed 1006 false']);
  });

  test('a one-way cut lets the other direction through', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    net.world.partition(['n1'], ['n2'], { oneWay: true });
    link.send(frame(1));
    net.node('n2').links[0]?.send(frame(2));
    await net.world.advance(1_000);
    assertEquals(net.node('n2').log, ['accepted n1.1']);
    assertEquals(net.node('n1').log, ['frame 2']);
  });

  test('a close is clean on both sides, comes last and only once', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    link.send(frame(1));
    link.close(4000, 'enough');
    link.close(4000, 'enough');
    link.send(frame(2));
    await net.world.advance(1_000);
    assertEquals(net.node('n2').log, ['accepted n1.1', 'frame 1', 'closed 4000 true']);
    assertEquals(net.node('n1').log, ['closed 4000 true']);
  });

  test('a crash resets links at the peers; a power failure tells them nothing until they send to the rebooted machine', async () => {
    const net = await new Net().start();
    await net.link('n1', 'n2');
    const silent = await net.link('n1', 'n3');
    net.world.crash('n2');
    net.world.crash('n3', { power: true });
    await net.world.advance(5_000);
    assertEquals(net.node('n1').log, ['closed 1006 false']);
    silent.send(frame(1));
    await net.world.advance(5_000);
    net.world.restart('n3');
    await net.world.advance(100);
    silent.send(frame(2));
    await net.world.advance(5_000);
    assertEquals(net.node('n1').log, ['closed 1006 false', 'closed 1006 false']);
    assertEquals(net.node('n3').log, []);
  });

  test('a hung connection swallows both ways while new ones work', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    const [end] = net.world.network.connectionsBetween(net.world.host('n1'), net.world.host('n2'));
    if (end === undefined) throw new Error('no connection');
    end.connection.hung = true;
    link.send(frame(1));
    link.close(4000, 'x');
    await net.world.advance(20_000);
    assertEquals(net.node('n2').log, ['accepted n1.1']);
    const second = await net.link('n1', 'n2');
    second.send(frame(2));
    await net.world.advance(1_000);
    assertEquals(net.node('n2').log.at(-1), 'frame 2');
  });

  test('simultaneous dials give two links', async () => {
    const net = await new Net().start();
    let done = 0;
    net.node('n1').transport.dial('10.0.0.2:1', () => done++);
    net.node('n2').transport.dial('10.0.0.1:1', () => done++);
    await net.world.advance(100);
    assertEquals(done, 2);
    assertEquals(net.node('n1').log, ['accepted n2.1']);
    assertEquals(net.node('n2').log, ['accepted n1.1']);
  });

  test('a cancelled dial is not answered, and leaves no link behind at the other side', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const net = await new Net(seed).start();
      let answered = false;
      const cancel = net.node('n1').transport.dial('10.0.0.2:1', () => answered = true);
      await net.world.advance(seed / 4);
      if (!answered) {
        cancel();
        await net.world.advance(10_000);
        assertEquals(answered, false);
        const log = net.node('n2').log;
        assertEquals(
          log.filter((line) => line.startsWith('accepted')).length,
          log.filter((l) => l.startsWith('closed')).length,
        );
      }
    }
  });

  test('bytes that a cut or a stopped reader does not take count as buffered', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    net.world.pause('n2');
    for (let i = 0; i < 20; i++) link.send(new Uint8Array(100_000));
    await net.world.advance(5_000);
    assertGreater(link.bufferedBytes(), 1_000_000);
    net.world.resume('n2');
    await net.world.advance(5_000);
    assertEquals(link.bufferedBytes(), 0);
  });

  test('seed questions are answered by the running node, and time out when it is stopped', async () => {
    const net = await new Net().start();
    const answers: unknown[] = [];
    net.node('n1').transport.seed(
      'http://10.0.0.2:1',
      (answer) => answers.push('uid' in answer ? answer.uid : answer.reason),
    );
    await net.world.advance(100);
    net.world.pause('n2');
    net.node('n1').transport.seed('10.0.0.2:1', (answer) => answers.push('uid' in answer ? answer.uid : answer.reason));
    await net.world.advance(10_000);
    assertEquals(answers, ['n2.1', 'timeout']);
  });

  test('an address can be listened on once; stop closes links and then refuses', async () => {
    const net = await new Net().start();
    const { process } = net.node('n2');
    let error = '';
    new SimTransport(process, { uid: 'x', clusterName: 'net' })
      .start({ accepted: () => {}, frame: () => {}, closed: () => {}, listenerLost: () => {} })
      .catch((reason) => error = String(reason));
    await net.world.advance(10);
    assertEquals(error.includes('port'), true);
    await net.link('n1', 'n2');
    void net.node('n2').transport.stop();
    await net.world.advance(100);
    assertEquals(net.node('n1').log, ['closed 1000 true']);
    const outcome = await net.dial('n1', 'n2');
    assert(!isLink(outcome) && outcome.reason === 'refused');
  });

  test('a lost listener is told to its owner, links stay', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    net.world.network.loseListener(net.world.host('n2'));
    link.send(frame(1));
    await net.world.advance(100);
    assertEquals(net.node('n2').log.sort(), ['accepted n1.1', 'frame 1', 'listener lost']);
  });

  test('skewed cuts begin apart, but within the skew', async () => {
    const net = await new Net().start();
    const link = await net.link('n1', 'n2');
    const back = net.node('n2').links[0];
    net.world.partition(['n1', 'n2'], ['n2', 'n3'], { skewMs: 100 });
    for (let i = 0; i < 120; i++) {
      link.send(frame(1));
      back?.send(frame(1));
      await net.world.advance(1);
    }
    await net.world.advance(1_000);
    const through = [net.node('n1').log.length, net.node('n2').log.length - 1];
    for (const count of through) assertLess(count, 110);
    assert(through[0] !== through[1], `${through}`);
  });
});
