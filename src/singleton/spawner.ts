/**
 * Spawning from any node: the caller asks the leader, the leader checks, registers and waits for a majority, and every node
 * that has the kind starts the singleton like one of its own. Registrations are cluster entries.
 */
import type { ActorSystem } from '../actor/system.ts';
import { checkOption, OptionsError, rules } from '../actor/options.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { Member } from '../cluster/member.ts';
import { countOf, flagOf, textOf } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { errorFields, readError, type SpawnError, spawnError } from './spawn_errors.ts';
import {
  decideSpawn,
  quorumOf,
  readRegistration,
  readRequestFields,
  type Registration,
  registrationValue,
  requestFields,
  spawnKey,
} from './spawn_registration.ts';

/** How long the leader waits for a host's check and for the majority, and a caller for the leader, per attempt. */
const answerMs = 3_000;

type Done = (error: SpawnError | undefined) => void;

const steps = { request: 0, reply: 1, check: 2, checked: 3, confirm: 4, confirmed: 5 } as const;

export class Spawner {
  readonly #system: ActorSystem;
  readonly #node: MembershipNode;
  #number = 0;
  /** As caller: requests that wait for the leader. */
  readonly #requests = new Map<number, { readonly uid: string; readonly done: Done }>();
  /** As leader: checks that wait for a host, confirmations that wait for members. */
  readonly #checks = new Map<number, (peer: PeerIdentity, free: boolean) => void>();
  readonly #confirms = new Map<number, { readonly uids: Set<string>; readonly done: () => void }>();
  /** As member: confirmations asked of this node before it had the entry. */
  #owed: { readonly peer: PeerIdentity; readonly number: number; readonly key: string; readonly version: number }[] =
    [];
  /** Since when this node leads with everybody's registrations known. */
  #collected = false;

  constructor(system: ActorSystem, node: MembershipNode) {
    this.#system = system;
    this.#node = node;
    node.onMessage(codes.spawn, (peer, envelope) => this.#onMessage(peer, envelope));
    node.onChange(() => this.#onChange());
  }

  /** One attempt: `done` is called once. */
  attempt(wanted: Registration, done: Done): void {
    const leader = this.#node.view().leader;
    if (!leader) return done(spawnError('leader-unavailable', 'the cluster has no leader at the moment'));
    if (leader.uid === this.#node.uid) return this.#lead(wanted, done);
    const number = this.#next();
    const once = this.#onceWithin(answerMs, done, () => {
      this.#requests.delete(number);
      return spawnError('leader-unavailable', `the leader ${leader.address} did not answer within ${answerMs} ms`);
    });
    this.#requests.set(number, { uid: leader.uid, done: once });
    this.#node.sendSystem(leader.address, [codes.spawn, steps.request, number, ...requestFields(wanted)], leader.uid);
  }

  /** Removes a registration; false when there is none. */
  remove(name: string): boolean {
    const key = spawnKey(name);
    if (!readRegistration(key, this.#node.view().entries.get(key)?.value ?? null)) return false;
    this.#node.writeEntry(key, null);
    return true;
  }

  #next(): number {
    return this.#number += 1;
  }

  /** `done`, at most once; after `ms` with the error of `late`. */
  #onceWithin(ms: number, done: Done, late: () => SpawnError): Done {
    let open = true;
    const cancel = this.#node.environment.timers.set(ms, () => {
      if (!open) return;
      open = false;
      done(late());
    });
    return (error) => {
      if (!open) return;
      open = false;
      cancel();
      done(error);
    };
  }

  // The leader

  #lead(wanted: Registration, done: Done): void {
    if (!this.#collected) {
      return done(spawnError('leader-unavailable', 'the leader does not know all registrations yet'));
    }
    const decision = decideSpawn(this.#node.view(), wanted);
    switch (decision.kind) {
      case 'refuse':
        return done(decision.error);
      case 'exists':
        return this.#confirm(wanted, done);
      case 'register':
        return this.#check(wanted, decision, done);
      default:
        return decision satisfies never;
    }
  }

  /** The name must be free on the host: no top-level actor of that name. */
  #check(wanted: Registration, host: { host: string; hostUid: string }, done: Done): void {
    const taken = () => spawnError('actor-already-exists', `an actor '${wanted.name}' exists on ${host.host}`);
    const proceed = (free: boolean): void => {
      if (!free) return done(taken());
      // Somebody may have been quicker while the host was asked.
      const again = decideSpawn(this.#node.view(), wanted);
      if (again.kind === 'refuse') return done(again.error);
      if (again.kind === 'register') this.#node.writeEntry(spawnKey(wanted.name), registrationValue(wanted));
      this.#confirm(wanted, done);
    };
    if (host.hostUid === this.#node.uid) return proceed(this.#isFree(wanted.name));
    const number = this.#next();
    const cancel = this.#node.environment.timers.set(answerMs, () => {
      this.#checks.delete(number);
      done(spawnError('leader-unavailable', `the host ${host.host} did not answer within ${answerMs} ms`));
    });
    this.#checks.set(number, (peer, free) => {
      if (peer.uid !== host.hostUid) return;
      cancel();
      this.#checks.delete(number);
      proceed(free);
    });
    this.#node.sendSystem(host.host, [codes.spawn, steps.check, number, wanted.name], host.hostUid);
  }

  #isFree(name: string): boolean {
    return this.#system.resolve(`/user/${name}`) === undefined;
  }

  /** Waits until more than half of the `up` members hold the registration. */
  #confirm(wanted: Registration, done: Done): void {
    const view = this.#node.view();
    const key = spawnKey(wanted.name);
    const version = view.entries.get(key)?.version ?? 0;
    const number = this.#next();
    const uids = new Set([this.#node.uid]);
    const once = this.#onceWithin(answerMs, done, () => {
      this.#confirms.delete(number);
      return spawnError('no-quorum', `no majority of the members has the registration of '${wanted.name}' yet`);
    });
    const settle = (): void => {
      if (uids.size < quorumOf(this.#node.view())) return;
      this.#confirms.delete(number);
      once(undefined);
    };
    this.#confirms.set(number, { uids, done: settle });
    for (const member of others(view.members, this.#node.uid)) {
      this.#node.sendSystem(member.address, [codes.spawn, steps.confirm, number, key, version], member.uid);
    }
    settle();
  }

  // Messages

  #onMessage(peer: PeerIdentity, envelope: Envelope): void {
    const number = countOf(envelope[2], 'number');
    const send = (...fields: unknown[]): void =>
      this.#node.sendSystem(peer.address, [codes.spawn, ...fields], peer.uid);
    switch (envelope[1]) {
      case steps.request: {
        const { wanted } = readRequestFields(envelope[3], envelope[4], number);
        if (this.#node.view().leader?.uid !== this.#node.uid) {
          return send(
            steps.reply,
            number,
            errorFields(spawnError('leader-unavailable', `${this.#node.address} does not lead`)),
          );
        }
        return this.#lead(wanted, (error) => send(steps.reply, number, error ? errorFields(error) : null));
      }
      case steps.reply: {
        const asked = this.#requests.get(number);
        if (asked?.uid !== peer.uid) return;
        this.#requests.delete(number);
        return asked.done(Array.isArray(envelope[3]) ? readError(envelope[3]) : undefined);
      }
      case steps.check:
        return send(steps.checked, number, this.#isFree(textOf(envelope[3], limits.typeNameChars, 'name')));
      case steps.checked:
        return this.#checks.get(number)?.(peer, flagOf(envelope[3], 'free'));
      case steps.confirm: {
        const key = textOf(envelope[3], limits.entryKeyChars, 'key');
        const version = countOf(envelope[4], 'version');
        this.#owed.push({ peer, number, key, version });
        if (this.#owed.length > limits.singletons) this.#owed.shift();
        return this.#payOwed();
      }
      case steps.confirmed: {
        const confirm = this.#confirms.get(number);
        confirm?.uids.add(peer.uid);
        return confirm?.done();
      }
    }
  }

  #onChange(): void {
    const view = this.#node.view();
    const leads = view.leader?.uid === this.#node.uid;
    this.#collected = leads && (this.#collected || view.converged);
    this.#payOwed();
  }

  #payOwed(): void {
    const { entries } = this.#node.view();
    this.#owed = this.#owed.filter(({ peer, number, key, version }) => {
      if ((entries.get(key)?.version ?? 0) < version) return true;
      this.#node.sendSystem(peer.address, [codes.spawn, steps.confirmed, number], peer.uid);
      return false;
    });
  }
}

function others(members: readonly Member[], selfUid: string): Member[] {
  return members.filter((member) => member.uid !== selfUid && member.status === 'up');
}

export interface RetryOptions {
  readonly spawnTimeoutMs: number;
  readonly waitIntervalMs: number;
  readonly retries: number;
  readonly signal: AbortSignal | undefined;
}

/** Checks the calling options. @throws OptionsError */
export function retryOptions(given: Partial<RetryOptions>): RetryOptions {
  const family = 'SpawnOptions';
  const { spawnTimeoutMs = 30_000, waitIntervalMs = 500, retries = 5, signal } = given;
  checkOption(family, 'spawnTimeoutMs', spawnTimeoutMs, rules.durationMs(1));
  checkOption(family, 'waitIntervalMs', waitIntervalMs, rules.durationMs(1));
  checkOption(family, 'retries', retries, rules.integer(1, 1_000));
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new OptionsError(family, 'signal', signal, 'must be an AbortSignal');
  }
  return { spawnTimeoutMs, waitIntervalMs, retries, signal };
}

/** Attempts with a wait between them that doubles, with jitter, until one succeeds, fails for good, or the bounds are met. */
export function spawnWithRetries(
  spawner: Spawner,
  node: MembershipNode,
  wanted: Registration,
  options: RetryOptions,
): Promise<void> {
  const { clock, timers, random } = node.environment;
  const deadline = clock.now() + options.spawnTimeoutMs;
  return new Promise((resolve, reject) => {
    let settled = false;
    const settle = (run: () => void): void => {
      if (settled) return;
      settled = true;
      cancelTimeout();
      options.signal?.removeEventListener('abort', abort);
      run();
    };
    const abort = (): void => settle(() => reject(spawnError('aborted', `the spawn of '${wanted.name}' was aborted`)));
    let last: SpawnError | undefined;
    const cancelTimeout = timers.set(options.spawnTimeoutMs, () => {
      const why = last ? `: ${last.message}` : '';
      settle(() =>
        reject(
          last ??
            spawnError('timeout', `'${wanted.name}' was not registered within ${options.spawnTimeoutMs} ms${why}`),
        )
      );
    });
    options.signal?.addEventListener('abort', abort, { once: true });
    if (options.signal?.aborted) return abort();
    const attempt = (count: number): void => {
      if (settled) return;
      spawner.attempt(wanted, (error) => {
        if (!error) return settle(resolve);
        last = error;
        const wait = options.waitIntervalMs * 2 ** (count - 1) * (1 + 0.2 * random.next());
        if (!error.retryable || count >= options.retries || clock.now() + wait >= deadline) {
          return settle(() => reject(error));
        }
        timers.set(wait, () => attempt(count + 1));
      });
    };
    attempt(1);
  });
}
