/** The callers that are connected to this node: relays what they may say to hosts, and what is meant for them. */
import type { Cancel, Environment } from '../actor/environment.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { ResolvedGrant } from '../cluster/caller_grants.ts';
import { limits } from '../limits.ts';
import { hostOf } from '../singleton/host.ts';
import { readRefuse, refuseEnvelope } from '../singleton/messages.ts';
import { isCaller } from '../singleton/outside.ts';
import type { CallerGateEvents, Link } from '../transport/contract.ts';
import { RefusalLog } from '../transport/refusal_log.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { callerId } from './caller_ref.ts';
import type { CallerDesk, ConnectedCallers } from './desk.ts';
import { GatewaySession, type SessionEnd, type SessionPort } from './gateway_session.ts';
import type { RateBucket } from './rate.ts';
import { RatePool } from './rate_pool.ts';

export interface GatewayOptions {
  readonly environment: Environment;
  readonly node: MembershipNode;
  readonly desk: CallerDesk;
  readonly grants: readonly ResolvedGrant[];
}

/** Attachments are repeated this often, so that a caller that only listens is not forgotten. */
const renewMs = limits.callerGraceMs / 5;

export class CallerGateway implements CallerGateEvents, ConnectedCallers {
  /** Sessions ended, by why. */
  readonly ended = new Map<SessionEnd, number>();
  readonly #options: GatewayOptions;
  readonly #sessions = new Map<Link, GatewaySession | 'identifying'>();
  readonly #byId = new Map<string, GatewaySession>();
  /** One for each grant. */
  readonly #pools: readonly RatePool[];
  readonly #held = new WeakMap<Link, { readonly pool: RatePool; readonly bucket: RateBucket }>();
  readonly #port: SessionPort;
  readonly #refusals: RefusalLog;
  #tick: Cancel | undefined;
  #renewAt = 0;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#pools = options.grants.map((grant) => new RatePool(grant));
    this.#refusals = new RefusalLog(options.environment);
    const { environment, node, desk } = options;
    this.#port = {
      environment,
      clusterName: node.clusterName,
      hostOf: (name) => hostOf(node.view(), name)?.uid,
      uidAt: (address) => node.view().members.find((member) => member.address === address)?.uid,
      toHost: (stamp, host, step) => desk.toHost(stamp, host, step),
      deliver: (stamp, host, told) => desk.deliver(stamp, host, told),
      begun: (session) => this.#begun(session),
      ended: (session, why) => this.#ended(session, why),
    };
    node.onChange(() => this.#onView());
  }

  /** Connected callers by grant, for the metrics. */
  connected(): ReadonlyMap<string, number> {
    return new Map(this.#options.grants.map(({ name }, at) => [name, this.#pools[at]!.held]));
  }

  unready(): string | undefined {
    const { status } = this.#options.node.view().self;
    return status === 'up' ? undefined : `this node is ${status}`;
  }

  accepted(link: Link, owner: number): boolean {
    const grant = this.#options.grants[owner];
    const pool = this.#pools[owner];
    const bucket = pool?.take(this.#options.environment.clock.now());
    if (grant === undefined || pool === undefined || bucket === undefined) return false;
    this.#held.set(link, { pool, bucket });
    this.#sessions.set(link, 'identifying');
    const begin = (id: string): void => {
      if (this.#sessions.get(link) !== 'identifying') return;
      this.#sessions.set(link, new GatewaySession(id, grant, link, bucket, this.#port));
      this.#arm();
    };
    const { uid } = link.peer;
    if (isCaller(uid)) begin(uid);
    else callerId(grant.name, uid).then(begin);
    return true;
  }

  frame(link: Link, bytes: Uint8Array): void {
    const session = this.#sessions.get(link);
    // Nothing is to be said before the welcome.
    if (session === 'identifying') link.close(4400, 'malformed: a frame before the welcome');
    else session?.received(bytes);
  }

  closed(link: Link): void {
    const session = this.#sessions.get(link);
    if (!this.#sessions.delete(link)) return;
    const held = this.#held.get(link);
    held?.pool.giveBack(held.bucket, this.#options.environment.clock.now());
    if (session !== 'identifying') session?.closed();
  }

  #begun(session: GatewaySession): void {
    const before = this.#byId.get(session.id);
    if (before !== undefined && before.number > session.number) return session.end('replaced');
    this.#byId.set(session.id, session);
    before?.end('replaced');
  }

  #ended(session: GatewaySession, why: SessionEnd): void {
    this.ended.set(why, (this.ended.get(why) ?? 0) + 1);
    if (this.#byId.get(session.id) === session) this.#byId.delete(session.id);
    if (why === 'closed' || why === 'bye' || why === 'replaced') return;
    const detail = `${session.id} (${session.grant.name}) was cut off`;
    this.#refusals.refused({ reason: 'rejected', code: why, detail }, this.ended.get(why) ?? 0);
  }

  answer(caller: string, host: string, envelope: Envelope): boolean {
    const session = this.#byId.get(caller);
    session?.say({ kind: 'answer', host, envelope: this.#withoutAddress(envelope) });
    return session !== undefined;
  }

  reply(caller: string, receiver: string, body: Uint8Array): boolean {
    const session = this.#byId.get(caller);
    session?.say({ kind: 'reply', receiver, body }, 'user');
    return session !== undefined;
  }

  /** Where nodes are does not concern callers: a hint names the process. */
  #withoutAddress(envelope: Envelope): Envelope {
    if (envelope[0] !== codes.refuse) return envelope;
    const refusal = readRefuse(envelope);
    return refuseEnvelope({ ...refusal, hint: refusal.hint && this.#port.uidAt(refusal.hint) });
  }

  #onView(): void {
    if (this.#byId.size === 0) return;
    const view = this.#options.node.view();
    const hosts = new Map<string, string | undefined>();
    const find = (name: string): string | undefined => {
      if (!hosts.has(name)) hosts.set(name, hostOf(view, name)?.uid);
      return hosts.get(name);
    };
    for (const session of [...this.#byId.values()]) session.rehost(find);
  }

  #arm(): void {
    if (this.#tick !== undefined || this.#sessions.size === 0) return;
    this.#tick = this.#options.environment.timers.set(limits.callerPingMs, () => {
      this.#tick = undefined;
      this.#look();
      this.#arm();
    });
  }

  #look(): void {
    const now = this.#options.environment.clock.now();
    const renew = now >= this.#renewAt;
    if (renew) this.#renewAt = now + renewMs;
    for (const session of [...this.#sessions.values()]) {
      if (session === 'identifying') continue;
      if (now - session.heardAt > limits.callerPingMs * 3) session.end('silent');
      else if (renew && session.number > 0) { for (const name of session.names.keys()) session.attach(name); }
    }
  }

  stop(): void {
    this.#tick?.();
    this.#tick = undefined;
  }
}
