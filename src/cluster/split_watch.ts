/** Watches the merged reachability for a split, waits until it is settled, and carries out what the strategy decides. */
import { Alarm } from './alarm.ts';
import { Claimant, type ClaimReport } from './claimant.ts';
import type { DowningDecision, SplitSituation } from './downing/contract.ts';
import {
  calm,
  downEverybody,
  observeSplit,
  shifted,
  type SplitView,
  stabilityOf,
  type StabilityState,
} from './downing/stability.ts';
import type { GateKeeper } from './gate_keeper.ts';
import type { NodeContext } from './node_context.ts';
import { splitOf } from './split.ts';
import { stableAfterMs } from './timing.ts';

/** How often a strategy that did not decide on a settled view is asked again, in milliseconds. */
const askAgainMs = 500;

const nobody: ReadonlySet<string> = new Set();

export class SplitWatch {
  #node: NodeContext;
  readonly #gate: GateKeeper;
  /** Where an arbiter decides. */
  readonly #claimant: Claimant | undefined;
  #stability: StabilityState = calm;
  #alarm: Alarm;
  #warned: string | undefined;

  /** @throws OptionsError when the arbiter's lease does not go with the cluster's durations */
  constructor(node: NodeContext, gate: GateKeeper) {
    this.#node = node;
    this.#gate = gate;
    this.#alarm = new Alarm(node.environment, () => this.refresh());
    const { arbiter } = node.settings.strategy;
    this.#claimant = arbiter &&
      new Claimant(node, arbiter, () => gate.longestSilenceMs(), () => this.refresh());
  }

  stop(): void {
    this.#alarm.stop();
    this.#claimant?.stop();
  }

  /** Of this node's claim; undefined where no arbiter decides. */
  claim(): ClaimReport | undefined {
    return this.#claimant?.report();
  }

  /** What this node did not watch was not stable. */
  paused(pauseMs: number): void {
    if (this.#stability !== calm) {
      this.#stability = shifted(this.#stability, pauseMs, this.#node.environment.clock.now());
    }
  }

  /** The view may have changed, or a deadline has come. */
  refresh(): void {
    const { settings } = this.#node;
    const state = this.#node.membership();
    if (state.phase !== 'member') return;
    const view = this.#node.view();
    const { lost, victims } = splitOf(state.gossip, state.selfUid);
    const split: SplitView = { members: view.members, unreachable: lost, indirectlyConnected: victims };
    const now = this.#node.environment.clock.now();
    const wait = stableAfterMs(settings.timing, view.members.length);
    this.#stability = observeSplit(this.#stability, split, wait, now);
    const stability = stabilityOf(this.#stability, wait, now);
    this.#warn();
    if (this.#claimant !== undefined) {
      this.#gate.leaveUnanswered(stability.kind === 'calm' ? nobody : new Set([...lost, ...victims]));
      this.#claimant.refresh();
      if (stability.kind !== 'settled') this.#claimant.unsettled();
    }
    switch (stability.kind) {
      case 'calm':
        this.#alarm.cancel();
        return;
      case 'wait':
        this.#alarm.at(stability.until);
        return;
      case 'settled':
        this.#decide({ ...split, selfUid: state.selfUid });
        if (this.#node.membership().phase === 'member') this.#alarm.at(now + askAgainMs);
        return;
      case 'unstable':
        if (settings.strategy.gated === false) return;
        this.#carryOut(downEverybody(split), 'the view kept changing');
        return;
      default:
        stability satisfies never;
    }
  }

  #decide(situation: SplitSituation): void {
    const { strategy } = this.#node.settings;
    if (this.#claimant === undefined) return this.#carryOut(strategy.decide(situation), `${strategy.name} decided`);
    const claim = this.#claimant.settled(situation);
    if (claim === undefined) return;
    const decision = strategy.decide({ ...situation, claim });
    const why = `${strategy.name}: ${this.#claimant.why()}`;
    if (claim === 'granted' && !decision.has(situation.selfUid)) {
      this.#claimant.used(situation.members.filter(({ uid }) => decision.has(uid)));
    }
    this.#carryOut(decision, why);
  }

  #carryOut(decision: DowningDecision, why: string): void {
    if (decision.size > 0) this.#node.dispatch({ kind: 'down', uids: [...decision], terminated: false, why });
  }

  #warn(): void {
    const text = this.#node.settings.strategy.warning?.(this.#node.view().members);
    if (text !== undefined && text !== this.#warned) this.#node.environment.log.warn(text);
    this.#warned = text;
  }
}
