import { after, before, describe, test } from 'node:test';
import {
  type Context,
  propagation,
  type Span,
  type SpanContext,
  type SpanOptions,
  SpanStatusCode,
  type TextMapPropagator,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { assert, assertEquals, assertRejects, assertStrictEquals } from '@std/assert';
import { traced, tracedRef } from '../../../adapters/opentelemetry/mod.ts';
import { Actor } from '../../../src/actor/actor.ts';
import { SingletonKey } from '../../../src/singleton/mod.ts';
import { MemoryCluster } from '../../facade/memory_cluster.ts';

interface Seen {
  readonly name: string;
  readonly kind: number | undefined;
  readonly parent: string | undefined;
  readonly context: SpanContext;
  readonly attributes: Readonly<Record<string, unknown>>;
  failed: boolean;
  ended: number;
}

/** A tracer that remembers; an SDK's would send. */
class Recorder {
  readonly spans: Seen[] = [];
  readonly tracer = {
    startSpan: (name: string, options: SpanOptions = {}, context?: Context): Span =>
      this.#start(name, options, context),
  } as Tracer;

  #start(name: string, options: SpanOptions, context: Context | undefined): Span {
    const parent = context && trace.getSpanContext(context);
    const spanId = (this.spans.length + 1).toString(16).padStart(16, '0');
    const seen: Seen = {
      name,
      kind: options.kind,
      parent: parent?.spanId,
      context: { traceId: parent?.traceId ?? 'f'.repeat(32), spanId, traceFlags: 1 },
      attributes: options.attributes ?? {},
      failed: false,
      ended: 0,
    };
    this.spans.push(seen);
    return {
      spanContext: () => seen.context,
      end: () => seen.ended += 1,
      setStatus: ({ code }: { code: SpanStatusCode }) => seen.failed = code === SpanStatusCode.ERROR,
      recordException: () => {},
    } as unknown as Span;
  }
}

/** The W3C's propagator, as the SDK has one. */
const w3c: TextMapPropagator = {
  inject: (context, carrier, setter) => {
    const span = trace.getSpanContext(context);
    if (span) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`);
  },
  extract: (context, carrier, getter) => {
    const [, traceId = '', spanId = ''] = String(getter.get(carrier, 'traceparent')).split('-');
    return trace.setSpanContext(context, { traceId, spanId, traceFlags: 1, isRemote: true });
  },
  fields: () => ['traceparent'],
};

type Command = { kind: 'echo'; text: string } | { kind: 'fail' };

class Echo extends Actor<Command> {
  static readonly singleton = SingletonKey.of<Command>('echo');
  static seen: unknown[] = [];
  override async onReceive(command: Command): Promise<void> {
    await Promise.resolve();
    Echo.seen.push(command);
    if (command.kind === 'fail') throw new Error('no');
    if (this.context.hasSender) this.context.sender.tell({ text: command.text, host: this.cluster.address });
  }
}

describe('spans through a singleton', () => {
  before(() => void propagation.setGlobalPropagator(w3c));
  after(() => propagation.disable());

  test('cross nodes, and end with what they are about', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const { tracer, spans } = new Recorder();
    const Traced = traced(Echo, { tracer });
    assertEquals([Traced.singleton, Traced.name], [Echo.singleton, 'Echo']);
    const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Traced));
    const ref = tracedRef(refs[1]!, { tracer });

    const answer = await cluster.get(ref.ask<{ text: string; host: string }>({ kind: 'echo', text: 'a' }));
    assertEquals(answer, { text: 'a', host: cluster.nodes[0]!.address });
    const [sent, handled] = spans as [Seen, Seen];
    assertEquals([sent.name, handled.name.startsWith('handle /')], [`ask ${refs[1]!.path}`, true]);
    assertEquals([handled.parent, handled.context.traceId], [sent.context.spanId, sent.context.traceId]);
    assertEquals([sent.ended, handled.ended, sent.failed, handled.failed], [1, 1, false, false]);
    assertEquals(handled.attributes['singlet.message.kind'], 'echo');
    assert(Number(handled.attributes['singlet.epoch']) > 0);
    assert(!JSON.stringify(spans.map(({ attributes }) => attributes)).includes('"a"'), 'no content');

    ref.tell({ kind: 'fail' });
    await cluster.until(() => spans.length === 4 && spans[3]!.ended === 1);
    assertEquals([spans[2]!.ended, spans[2]!.failed, spans[3]!.failed], [1, false, true]);
    const late = ref.ask({ kind: 'fail' }, 1_000);
    late.catch(() => {});
    await assertRejects(() => cluster.get(late));
    assertEquals([spans[4]!.ended, spans[4]!.failed], [1, true]);
  });

  test('without an SDK messages are untouched, and untraced senders are understood', async () => {
    propagation.disable();
    const cluster = new MemoryCluster();
    await cluster.grow(1);
    Echo.seen = [];
    const plain = cluster.nodes[0]!.cluster.singleton.start(traced(Echo));
    const told: unknown[] = [];
    const spy = {
      ...plain,
      path: plain.path,
      tell: (message: unknown) => told.push(message),
    } as unknown as typeof plain;
    const command: Command = { kind: 'echo', text: 'x' };
    tracedRef(spy).tell(command);
    assertStrictEquals(told[0], command);
    await cluster.get(plain.ask(command));
    assertEquals(Echo.seen, [command]);
  });
});
