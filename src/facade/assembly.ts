/** Puts one node together: transport, peers, membership, remote refs, singletons and HTTP, and takes them apart in order. */
import type { Hono } from 'hono';
import type { Cancel } from '../actor/environment.ts';
import type { ActorSystem } from '../actor/system.ts';
import { CallerDesk } from '../callers/desk.ts';
import type { ClusterNode, NodeEnd } from '../cluster/node.ts';
import type { NodeSettings } from '../cluster/node_context.ts';
import { Remoting } from '../cluster/remoting.ts';
import { fingerprint, type ResolvedClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { createNode } from '../cluster/start_node.ts';
import { checkHandOverTimeout, handOverTimeoutMs } from '../cluster/timing.ts';
import { QuorumArbiter } from '../coordination/quorum_arbiter.ts';
import { createApp } from '../http/app.ts';
import { limits } from '../limits.ts';
import { type RegistryOptions, SingletonRegistry } from '../singleton/registry.ts';
import { singletonOfInstance } from '../singleton/instance.ts';
import { SingletonRef } from '../singleton/singleton_ref.ts';
import type { SeedAnswer, Transport } from '../transport/contract.ts';
import type { CallerGate } from '../transport/caller_gate.ts';
import { protocolVersion } from '../transport/hello.ts';
import { LinkedPeers } from '../transport/peers.ts';
import type { Runtime } from '../transport/runtime.ts';
import { WebSocketTransport } from '../transport/websocket_transport.ts';
import type { PeersEvents } from '../transport/peers_contract.ts';
import { Codec } from '../wire/codec.ts';
import { codes } from '../wire/codes.ts';
import { callerGate, CallerService } from './caller_service.ts';
import { logChanges } from './change_log.ts';
import { NodeInspection } from './inspection.ts';

export interface Assembly {
  readonly system: ActorSystem;
  readonly options: ResolvedClusterOptions;
  readonly node: ClusterNode;
  readonly peers: LinkedPeers;
  readonly registry: SingletonRegistry;
  readonly remoting: Remoting;
  readonly whenEnded: Promise<NodeEnd>;
  fetch(request: Request): Response | Promise<Response>;
  leave(): Promise<void>;
}

/** How often a node that is down looks whether its instances have ended. */
const lookMs = 20;

/** What a process brings along from the membership it has lost. */
export interface Former {
  readonly registry: SingletonRegistry;
  readonly end: NodeEnd;
}

/** What exists once the node listens. */
interface Listening {
  readonly system: ActorSystem;
  readonly options: ResolvedClusterOptions;
  readonly runtime: Runtime | undefined;
  readonly transport: Transport;
  readonly gate: CallerGate | undefined;
  readonly node: ClusterNode;
  readonly peers: LinkedPeers;
  readonly remoting: Remoting;
}

/** Nothing stays behind when it throws. */
export async function assemble(
  system: ActorSystem,
  options: ResolvedClusterOptions,
  uid: string,
  former?: Former,
): Promise<Assembly> {
  const listening = await listen(system, options, uid, former?.end);
  try {
    return complete(listening, former);
  } catch (error) {
    await listening.peers.stop();
    throw error;
  }
}

async function listen(
  system: ActorSystem,
  options: ResolvedClusterOptions,
  uid: string,
  previous: NodeEnd | undefined,
): Promise<Listening> {
  const runtime = options.transport ? options.runtime : options.runtime ?? (await import('#runtime')).runtime;
  const made: { node?: ClusterNode } = {};
  const seedAnswer = (): SeedAnswer => made.node?.seedAnswer() ?? unjoined(options, uid);
  const identity = {
    uid,
    clusterName: options.name,
    roles: options.roles,
    runtime: runtime?.name ?? 'memory',
    seedAnswer,
  };
  const gate = await callerGate(system, options, runtime);
  const transport = options.transport?.(identity) ?? webSockets(system, options, runtime!, uid, seedAnswer, gate);
  const remoting = new Remoting({ system, uid });
  const codec = new Codec({ refs: remoting.refs });
  let peers: LinkedPeers | undefined;
  const node = await createNode(settingsOf(system, options, uid, transport, runtime, previous), (events) => {
    peers = new LinkedPeers({
      environment: system.environment,
      transport,
      codec,
      uid,
      events: withRemoting(events, remoting),
      onUndeliverable: (address, envelope, reason) => void remoting.undeliverable(address, envelope, reason),
    });
    return peers;
  });
  made.node = node;
  return { system, options, runtime, transport, gate, node, peers: peers!, remoting };
}

function complete(listening: Listening, former: Former | undefined): Assembly {
  const { system, options, transport, node, peers, remoting } = listening;
  // Journals keep apart the writers of different clusters.
  system.extensions.set('writer-identity', () => ({ uid: node.uid, clusterId: node.view().clusterId }));
  attachRemoting(remoting, node);
  const arbiter = arbiterOf(node, options);
  const desk = new CallerDesk({ system, node, registry: () => registry });
  const registryOptions = { ...registryOptionsOf(options, arbiter), outside: desk };
  const registry: SingletonRegistry = former?.registry ?? new SingletonRegistry(system, node, registryOptions);
  former?.registry.rebind(node, registryOptions);
  remoting.addVirtualRefs({
    scheme: 'singleton',
    // An instance is known to others by its singleton, wherever that runs when they answer.
    nameOf: (ref) => ref instanceof SingletonRef ? ref.typeName : singletonOfInstance(ref.path),
    refFor: (name) => registry.ref(name),
  });
  remoting.addVirtualRefs(desk.refs);
  const callers = new CallerService(listening, desk);
  logChanges(node, system.environment.log);
  const inspection = new NodeInspection(system, options, node, registry, peers, callers);
  const app = options.http === false ? undefined : withUser(createApp(inspection), options);
  if (app && transport instanceof WebSocketTransport) transport.setFetch((request) => app.fetch(request));
  const whenEnded = ending(listening, registry);
  const leave = (): Promise<void> => node.leave().then(() => whenEnded.then(() => undefined));
  const cancelShutdown = registerShutdown(system, leave, options);
  whenEnded.then(() => {
    arbiter?.close();
    callers.end();
    cancelShutdown();
  });
  const fetch = (request: Request): Response | Promise<Response> =>
    app?.fetch(request) ?? new Response('HTTP is switched off', { status: 404 });
  return { system, options, node, peers, registry, remoting, whenEnded, leave, fetch };
}

function registryOptionsOf(options: ResolvedClusterOptions, arbiter: QuorumArbiter | undefined): RegistryOptions {
  const { timing, kinds } = options;
  return {
    kinds,
    handOverTimeoutMs: handOverTimeoutMs(timing, 5),
    checkHandOverTimeout: (family, field, ms) => checkHandOverTimeout(timing, family, field, ms),
    driftBound: timing.driftBound,
    ...(arbiter ? { arbiter } : {}),
  };
}

/** This node's part in quorum leases: a voter votes from its start on, whatever it runs itself. */
function arbiterOf(node: ClusterNode, options: ResolvedClusterOptions): QuorumArbiter | undefined {
  const { leaseVoters: voters, leaseMaxTtlMs: maxTtlMs, timing: { driftBound } } = options;
  return voters.length === 0 ? undefined : new QuorumArbiter(node, { voters, maxTtlMs, driftBound });
}

/** Remote refs and watches hear of links after the membership has. */
function withRemoting(events: PeersEvents, remoting: Remoting): PeersEvents {
  return {
    connected: (peer) => {
      events.connected(peer);
      remoting.connected(peer);
    },
    disconnected: (peer, clean, why) => {
      events.disconnected(peer, clean, why);
      remoting.disconnected(peer);
    },
    dialFailed: (address, failure) => events.dialFailed(address, failure),
    message: (peer, envelope, bytes) => events.message(peer, envelope, bytes),
    listenerLost: (why) => events.listenerLost(why),
  };
}

function attachRemoting(remoting: Remoting, node: ClusterNode): void {
  remoting.attach(node.peers);
  for (const code of [codes.tell, codes.watch, codes.unwatch, codes.terminated, codes.stop]) {
    node.onMessage(code, (peer, envelope, bytes) => void remoting.receive(peer, envelope, bytes));
  }
  node.onChange((_view, changes) => {
    for (const change of changes) {
      if (change.kind !== 'member') continue;
      const { status, address, uid } = change.member;
      if (status === 'down' || status === 'removed') remoting.nodeGone(address, uid);
    }
  });
}

function unjoined(options: ResolvedClusterOptions, uid: string): SeedAnswer {
  return {
    clusterName: options.name,
    protocol: protocolVersion,
    fingerprint: fingerprint(options),
    address: `${options.host}:${options.port}`,
    uid,
    clusterId: undefined,
    formedAt: undefined,
    members: [],
  };
}

function webSockets(
  system: ActorSystem,
  options: ResolvedClusterOptions,
  runtime: Runtime,
  uid: string,
  seedAnswer: () => SeedAnswer,
  gate: CallerGate | undefined,
): WebSocketTransport {
  const { name, host, bindHost, port, advertisedPort, roles, insecure, frameIntegrity } = options;
  const secret = options.secret?.reveal();
  const tls = options.tls?.reveal();
  return new WebSocketTransport({
    runtime,
    environment: system.environment,
    clusterName: name,
    host,
    bindHost,
    port,
    uid,
    roles,
    insecure,
    frameIntegrity,
    seedAnswer,
    ...(gate === undefined ? {} : { endpoints: [gate.endpoint] }),
    ...(advertisedPort === undefined ? {} : { advertisedPort }),
    ...(secret === undefined ? {} : { secret }),
    ...(tls === undefined ? {} : { tls }),
  });
}

function settingsOf(
  system: ActorSystem,
  options: ResolvedClusterOptions,
  uid: string,
  transport: Transport,
  runtime: Runtime | undefined,
  previous: NodeEnd | undefined,
): NodeSettings {
  return {
    ...(previous ? { previous } : {}),
    environment: system.environment,
    clusterName: options.name,
    uid,
    roles: options.roles,
    runtime: runtime?.name ?? 'memory',
    appVersion: options.appVersion,
    seeds: options.seeds,
    protocol: protocolVersion,
    fingerprint: fingerprint(options),
    timing: options.timing,
    strategy: options.downing,
    transport,
    selfElection: options.selfElection,
    minMembers: options.minMembers,
    gossipIntervalMs: options.gossipIntervalMs,
    leaveTimeoutMs: options.leaveTimeoutMs,
    ...(options.gossipToAllUpTo === undefined ? {} : { gossipToAllUpTo: options.gossipToAllUpTo }),
  };
}

/** The user's hook may add routes to the app, or return an app of its own that mounts it. */
function withUser(
  app: Hono,
  options: ResolvedClusterOptions,
): { fetch(request: Request): Response | Promise<Response> } {
  if (typeof options.http !== 'function') return app;
  return (options.http(app) as Hono | undefined) ?? app;
}

/**
 * After the node has ended: wait for its instances, at most stopBound; what is still alive then is killed, and since a
 * handler that is running cannot be killed, the process ends. Leases are given back before that, or others would wait for
 * the end of their terms. The listener closes last.
 */
function ending({ system, options, node, peers, runtime }: Listening, registry: SingletonRegistry): Promise<NodeEnd> {
  const { clock, timers, log } = system.environment;
  return new Promise((resolve) => {
    const finish = (end: NodeEnd): void => {
      peers.stop().then(() => resolve(end), () => resolve(end));
    };
    const release = (end: NodeEnd, deadline: number): void => {
      if (!registry.releasesLeases || clock.now() >= deadline) return finish(end);
      timers.set(lookMs, () => release(end, deadline));
    };
    const wait = (end: NodeEnd, deadline: number): void => {
      if (!registry.hostsAnything) return release(end, clock.now() + limits.leaseReleaseMs);
      if (clock.now() < deadline) return void timers.set(lookMs, () => wait(end, deadline));
      log.error('an instance outlived this node by more than stopBound: it is killed and this process ends', {
        stopBoundMs: options.timing.stopBoundMs,
        why: end.why,
      });
      registry.killAll();
      finish(end);
      runtime?.exit(1);
    };
    node.onEnd((end) => wait(end, clock.now() + options.timing.stopBoundMs));
  });
}

function registerShutdown(system: ActorSystem, leave: () => Promise<void>, options: ResolvedClusterOptions): Cancel {
  const shutdown = system.coordinatedShutdown;
  shutdown.setPhaseTimeout('cluster-leave', options.leaveTimeoutMs + 5_000);
  return shutdown.addTask('cluster-leave', 'leave the cluster', leave);
}
