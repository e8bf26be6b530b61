import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { Actor } from '../../src/actor/actor.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import type { Receipt } from '../../src/singleton/delivery_host.ts';
import { Instance, type InstancePort } from '../../src/singleton/instance.ts';
import { resolveStart } from '../../src/singleton/start_options.ts';
import { WarmHandOverActor } from '../../src/singleton/warm_hand_over.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';

class Warm extends WarmHandOverActor {
  count = 0;
  onReceive(): void {}
  serializeForHandOver(): Uint8Array {
    return new Uint8Array([this.count + 1]);
  }
  restoreFromHandOver([count = 0]: Uint8Array): void {
    this.count = count;
  }
}

/** The state that an instance leaves behind which was handed `[7]`, and is stopped before or after it has begun. */
function left(begin: boolean, collect: boolean): number[] | null {
  const environment = new ManualEnvironment();
  const system = ActorSystem.create('instances', { environment });
  let state: Uint8Array | null = null;
  const port: InstancePort = {
    started: () => {},
    ended: (_cause, result) => state = result,
    settled: () => {},
    warn: () => {},
  };
  const gate = { open: () => true, onOpen: () => () => {} };
  const life = { epoch: 1, gate, warm: new Uint8Array([7]), cold: undefined, tenure: undefined };
  const instance = new Instance(system, resolveStart({ typeName: 'warm', actor: Warm }), life, port);
  if (begin) environment.runTurns();
  instance.stop(collect);
  environment.runTurns();
  return state && [...state as Uint8Array];
}

test('R48: moved on before it has begun: the state handed over to it goes on unchanged', () => {
  assertEquals(left(true, true), [8], 'its own state, once it has begun');
  assertEquals(left(false, true), [7]);
  assertEquals(left(false, false), null, 'after a self-down nothing is passed on');
});

test('a lease that looked lost for a moment and is not: what waits is handled, though nothing more comes', () => {
  const environment = new ManualEnvironment();
  const system = ActorSystem.create('instances', { environment });
  const got: number[] = [];
  class Taker extends Actor<number> {
    onReceive(message: number): void {
      got.push(message);
    }
  }
  const port: InstancePort = { started: () => {}, ended: () => {}, settled: () => {}, warn: () => {} };
  let looks = 0;
  let lostLooks = 0;
  const held = () => (looks += 1) > lostLooks;
  const gate = { open: () => true, onOpen: () => () => {} };
  const life = { epoch: 1, gate, warm: undefined, cold: undefined, tenure: { held, mayBegin: held } };
  const instance = new Instance(system, resolveStart({ typeName: 'taker', actor: Taker }), life, port);
  environment.runTurns();
  [looks, lostLooks] = [0, 1];
  instance.deliver(1, undefined, { stream: 's', seq: 1, epoch: 1 } as unknown as Receipt);
  environment.runTurns();
  assertEquals(got, [1]);
  [looks, lostLooks] = [0, Infinity];
  instance.deliver(2, undefined, { stream: 's', seq: 2, epoch: 1 } as unknown as Receipt);
  environment.runTurns();
  assertEquals([got, looks < 10], [[1], true], 'lost for good: nothing is handled, and nobody spins');
});

test('S1: shortly before the term of its lease ends no handler begins; after a renewal what waits is handled', async () => {
  const environment = new ManualEnvironment();
  const system = ActorSystem.create('instances', { environment });
  const got: number[] = [];
  class Taker extends Actor<number> {
    onReceive(message: number): void {
      got.push(message);
    }
  }
  const port: InstancePort = { started: () => {}, ended: () => {}, settled: () => {}, warn: () => {} };
  const gate = { open: () => true, onOpen: () => () => {} };
  const lease = { held: true, mayBegin: true };
  const tenure = { held: () => lease.held, mayBegin: () => lease.held && lease.mayBegin };
  const life = { epoch: 1, gate, warm: undefined, cold: undefined, tenure };
  const instance = new Instance(system, resolveStart({ typeName: 'taker', actor: Taker }), life, port);
  environment.runTurns();
  const deliver = (message: number) =>
    instance.deliver(message, undefined, { stream: 's', seq: message, epoch: 1 } as unknown as Receipt);
  lease.mayBegin = false;
  deliver(1);
  await environment.elapse(500);
  assertEquals(got, []);
  lease.mayBegin = true;
  await environment.elapse(30);
  assertEquals(got, [1]);
  lease.mayBegin = false;
  deliver(2);
  await environment.elapse(100);
  lease.held = false;
  await environment.elapse(100);
  assertEquals([got, environment.timerCount], [[1], 0], 'lost: nobody looks any more');
});
