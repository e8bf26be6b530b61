/** The leader's part in spawning: it checks, registers, and waits until a majority has the registration (rule 19). */
import type { MembershipNode } from '../cluster/contract.ts';
import type { Member } from '../cluster/member.ts';
import { limits } from '../limits.ts';
import { decideSpawn, type SpawnDecision } from './spawn_decision.ts';
import { type SpawnError, spawnError } from './spawn_errors.ts';
import { spawnEnvelope } from './spawn_messages.ts';
import { type Registration, registrationValue, spawnKey } from './spawn_registration.ts';
import type { SpawnMajority } from './spawn_majority.ts';

/** How long the leader waits for members' checks, and then for the majority. */
export const answerMs = 3_000;

export type Done = (error: SpawnError | undefined) => void;

/** Is `name` free on this node? `asHost`: as that of a top-level actor too. */
export type IsFree = (name: string, asHost: boolean) => boolean;

interface Check {
  readonly uid: string;
  readonly done: (free: boolean) => void;
}

interface Question {
  readonly member: Member;
  readonly asHost: boolean;
}

export class SpawnLeader {
  readonly #node: MembershipNode;
  readonly #isFree: IsFree;
  readonly #majority: SpawnMajority;
  readonly #checks = new Map<number, Check>();
  #number = 0;
  /** This node has led without a break since it knew the registrations of all members. */
  #collected = false;

  constructor(node: MembershipNode, isFree: IsFree, majority: SpawnMajority) {
    this.#node = node;
    this.#isFree = isFree;
    this.#majority = majority;
  }

  collect(): void {
    const view = this.#node.view();
    const leads = view.leader?.uid === this.#node.uid;
    this.#collected = leads && (this.#collected || view.converged);
  }

  lead(wanted: Registration, done: Done): void {
    // Convergence by itself is no change of the view that anybody is told of.
    this.collect();
    const refuse = (why: string): void => done(spawnError('leader-unavailable', why));
    if (this.#node.view().leader?.uid !== this.#node.uid) return refuse(`${this.#node.address} does not lead`);
    if (!this.#collected) return refuse('the leader does not know all registrations yet');
    if (this.#checks.size >= limits.spawnRequests) return refuse(`${limits.spawnRequests} requests are under way`);
    this.#decide(wanted, new Set(), done);
  }

  /** `asked`: questions that were answered with yes. */
  #decide(wanted: Registration, asked: ReadonlySet<string>, done: Done): void {
    const decision = decideSpawn(this.#node.view(), wanted);
    switch (decision.kind) {
      case 'refuse':
        return done(decision.error);
      case 'exists':
        return this.#confirm(wanted, done);
      case 'register': {
        const open = questions(decision).filter((question) => !asked.has(keyOf(question)));
        if (open.length > 0) return this.#ask(wanted, open, asked, done);
        this.#node.writeEntry(spawnKey(wanted.name), registrationValue(wanted));
        return this.#confirm(wanted, done);
      }
      default:
        return decision satisfies never;
    }
  }

  /** All at once; then the decision is made again, since somebody may have been quicker, or the host have gone. */
  #ask(wanted: Registration, open: readonly Question[], asked: ReadonlySet<string>, done: Done): void {
    const { name } = wanted;
    const numbers = new Map<number, Member>();
    let waiting = open.length;
    const end = (): void => {
      cancel();
      for (const number of numbers.keys()) this.#checks.delete(number);
    };
    const cancel = this.#node.environment.timers.set(answerMs, () => {
      const silent = [...numbers].find(([number]) => this.#checks.has(number))?.[1];
      end();
      done(spawnError('leader-unavailable', `${silent?.address} did not answer the leader within ${answerMs} ms`));
    });
    const answered = ({ member }: Question, free: boolean): void => {
      if (!free) {
        end();
        return done(spawnError('actor-already-exists', `an actor '${name}' exists on ${member.address}`));
      }
      waiting -= 1;
      if (waiting > 0) return;
      end();
      this.#decide(wanted, new Set([...asked, ...open.map(keyOf)]), done);
    };
    const remote = open.filter(({ member }) => member.uid !== this.#node.uid);
    for (const question of remote) {
      const number = this.#number += 1;
      const { member, asHost } = question;
      numbers.set(number, member);
      this.#checks.set(number, {
        uid: member.uid,
        done: (free) => {
          this.#checks.delete(number);
          answered(question, free);
        },
      });
      this.#node.sendSystem(member.address, spawnEnvelope({ step: 'check', number, name, asHost }), member.uid);
    }
    for (const question of open) {
      if (question.member.uid === this.#node.uid) answered(question, this.#isFree(name, question.asHost));
    }
  }

  /** The answer of the one who was asked; anybody else's counts for nothing. */
  checked(uid: string, number: number, free: boolean): void {
    const check = this.#checks.get(number);
    if (check?.uid === uid) check.done(free);
  }

  #confirm({ name }: Registration, done: Done): void {
    this.#majority.ask(spawnKey(name), answerMs, (agreed) =>
      done(
        agreed
          ? undefined
          : spawnError('no-quorum', `no majority of the members has the registration of '${name}' yet`),
      ));
  }
}

function questions({ host, starters }: Extract<SpawnDecision, { kind: 'register' }>): Question[] {
  const others = starters.filter((member) => member.uid !== host.uid);
  return [{ member: host, asHost: true }, ...others.map((member) => ({ member, asHost: false }))];
}

function keyOf({ member, asHost }: Question): string {
  return `${member.uid}/${asHost}`;
}
