import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { Actor } from '../../src/actor/actor.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { clusterProgram, type ClusterScene } from '../../src/testkit/cluster_program.ts';
import type { Fault } from '../../src/testkit/fault.ts';
import { formatReport } from '../../src/testkit/report.ts';
import { simulate, type SimulationResult } from '../../src/testkit/simulate.ts';

const key = SingletonKey.of<string>('echo');

class Echo extends Actor<string> {
  override onReceive(message: string): void {
    this.context.sender.tell(`${message} by ${this.context.epoch > 0}`);
  }
}

/** Each node asks once a second; how many answers came. */
function scene(answers: string[], more: Partial<ClusterScene> = {}) {
  return clusterProgram(() => ({
    name: 'echo',
    singletons: ['echo'],
    start(cluster, process) {
      const ref = cluster.singleton.start(key, Echo);
      const ask = () => {
        process.timers.set(1_000, ask);
        ref.ask<string>(process.name, 2_000).then((answer) => void answers.push(answer), () => {});
      };
      ask();
    },
    ...more,
  }));
}

function run(answers: string[], faults: readonly Fault[], more: Partial<ClusterScene> = {}): Promise<SimulationResult> {
  return simulate({ seed: 9, nodes: 3, profile: 'mixed', until: 20_000, faults, program: scene(answers, more) });
}

const faults: readonly Fault[] = [
  { kind: 'call', at: 12_000, node: 'n2', action: 'move', argument: '3' },
  { kind: 'crash', at: 14_000, node: 'n1', power: false, restartAfterMs: 1_000 },
  { kind: 'leave', at: 20_000, node: 'n2', restartAfterMs: 500 },
];

describe('clusterProgram', () => {
  test('runs singletons of the public API through faults, alike each time', async () => {
    const answers: string[] = [];
    const first = await run(answers, faults);
    assertEquals(first.failure, undefined, formatReport(first));
    assertEquals(answers.length > 40, true);
    assertEquals((await run([], faults)).hash, first.hash);
    assertEquals((await run([], [])).hash === first.hash, false);
  });

  test('a rule of the scene that breaks ends the run, and the report names it', async () => {
    const answers: string[] = [];
    const result = await run(answers, [], { check: () => answers.length > 10 ? 'more than ten answers' : undefined });
    assertEquals([result.failure?.rule, answers.length], ['echo', 11]);
    assertEquals(formatReport(result).includes('FAILED at'), true);
  });

  test('what the scene still waits for is named when it does not come', async () => {
    const result = await simulate({
      seed: 9,
      nodes: 2,
      profile: 'calm',
      until: 1_000,
      settleWithinMs: 3_000,
      program: scene([], { unsettled: (clusters) => `${clusters.length} nodes wait for the moon` }),
    });
    assertEquals(result.failure?.message, 'S2: not settled 3000 ms after the last fault: 2 nodes wait for the moon');
  });

  test('a scene that does not start ends the run with its error', async () => {
    const result = await run([], [], {
      start: () => {
        throw new Error('planted');
      },
    });
    assertEquals(result.failure?.message.includes('planted'), true);
  });
});
