/** A cluster in memory on a manual clock, with callers from outside; and callers that do not behave. */
import { Caller } from '../../src/callers/caller.ts';
import type { ConnectOptions } from '../../src/callers/caller_options.ts';
import { type FromCaller, fromCallerEnvelope, readToCaller, type ToCaller } from '../../src/callers/messages.ts';
import type { CallerGrant } from '../../src/cluster/caller_grants.ts';
import { limits } from '../../src/limits.ts';
import type { Link, LinkClose } from '../../src/transport/contract.ts';
import { memoryCall } from '../../src/transport/memory_callers.ts';
import { batchContent, batchFrame, type Envelope } from '../../src/wire/batch.ts';
import { LeanCodec } from '../../src/wire/lean_codec.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';

export const token = 'a-token-for-tests-1';

export const grants: readonly CallerGrant[] = [
  { name: 'all', token, singletons: ['counter', 'plain', 'greeter'] },
  { name: 'teller', token: 'a-token-for-tests-2', singletons: ['counter'], allow: ['tell'] },
  { name: 'asker', token: 'a-token-for-tests-3', singletons: ['counter'], allow: ['ask'] },
  { name: 'slow', token: 'a-token-for-tests-4', singletons: '*', messagesPerSecond: 100, maxCallers: 2 },
];

const frames = new LeanCodec({ maxBytes: limits.callerFrameBytes });

export class CallerWorld extends MemoryCluster {
  readonly callers: Caller[] = [];
  #ids = 0;

  nodesWithCallers(count: number): Promise<MemoryNode[]> {
    return this.grow(count, { callers: grants });
  }

  /** Started and connected to the first of `nodes`, in their order from then on. */
  async connect(
    options: Partial<ConnectOptions> & { grant?: string; nodes?: readonly MemoryNode[] } = {},
  ): Promise<Caller> {
    const caller = this.caller(options);
    await this.until(() => caller.state === 'connected');
    return caller;
  }

  caller(
    { grant = 'all', nodes = this.nodes, ...options }: Partial<ConnectOptions> & {
      grant?: string;
      nodes?: readonly MemoryNode[];
    } = {},
  ): Caller {
    const id = `caller:${(this.#ids += 1)}`;
    const owner = grants.findIndex(({ name }) => name === grant);
    const caller = new Caller({
      environment: this.environment,
      urls: nodes.map(({ address }) => address),
      dial: (url, events) => memoryCall(this.network, { id, owner }, url, events),
      options: { token, ...options },
    });
    this.callers.push(caller);
    caller.start();
    return caller;
  }

  /** Something that speaks frames and keeps to no rule. */
  async rogue(node: MemoryNode, grant = 'all', id = `caller:rogue-${(this.#ids += 1)}`): Promise<Rogue> {
    const owner = grants.findIndex(({ name }) => name === grant);
    const rogue = new Rogue();
    memoryCall(this.network, { id, owner }, node.address, {
      opened: (link) => rogue.link = link,
      failed: (failure) => rogue.close = { code: 0, reason: failure.detail, clean: false },
      frame: (_link, bytes) => rogue.got.push(...messagesIn(bytes)),
      closed: (_link, close) => rogue.close = close,
    });
    await this.until(() => rogue.got.length > 0 || rogue.close !== undefined);
    return rogue;
  }

  crash(node: MemoryNode): void {
    this.network.crash(node.address);
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }
}

function messagesIn(bytes: Uint8Array): ToCaller[] {
  return frames.decodeSequence(batchContent(bytes, limits.frameBytes)).map((one) => readToCaller(one as Envelope));
}

export class Rogue {
  link: Link | undefined;
  readonly got: ToCaller[] = [];
  close: LinkClose | undefined;

  say(...messages: (FromCaller | Envelope)[]): void {
    const encoded = messages.map((message) =>
      frames.encode('kind' in message ? fromCallerEnvelope(message as FromCaller) : message)
    );
    this.link?.send(batchFrame('system', encoded, encoded.reduce((sum, { length }) => sum + length, 0)));
  }

  raw(bytes: Uint8Array): void {
    this.link?.send(bytes);
  }
}
