/**
 * The public entry `singlet/opentelemetry`: spans for what goes through a singleton's ref, with the context carried along to
 * whichever node hosts it. Needs the package `@opentelemetry/api`; without an SDK that is registered with it nothing is added to
 * any message. Programs that do not import this pay nothing.
 */
import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import type { Actor, ActorRef } from '../../src/mod.ts';
import { type Carried, pack, unpack } from './carrier.ts';

/** Options of `tracedRef` and `traced`. */
export interface TracingOptions {
  /** Default: the global provider's tracer of the name `singlet`. */
  readonly tracer?: Tracer;
}

/** What `tracedRef` gives: the two ways to send. */
export interface TracedRef<T> {
  tell(message: T, sender?: ActorRef<any>): void;
  ask<R = unknown>(message: T, timeoutMs?: number): Promise<R>;
}

/**
 * Sends through `ref`, which is a singleton's or any other, with a span around: of a `tell` it ends at once, of an `ask` with the
 * reply or the failure. What is sent carries the context, so the actor at the other end must be `traced`.
 */
export function tracedRef<T>(ref: ActorRef<T>, options: TracingOptions = {}): TracedRef<T> {
  const target = ref as ActorRef<any>;
  const begin = (operation: 'tell' | 'ask', message: T): { span: Span; packed: unknown } => {
    const span = tracerOf(options).startSpan(`${operation} ${ref.path}`, {
      kind: operation === 'ask' ? SpanKind.CLIENT : SpanKind.PRODUCER,
      attributes: attributesOf(ref.path, message),
    });
    return { span, packed: pack(message, carriedBy(trace.setSpan(context.active(), span))) };
  };
  return {
    tell: (message, sender) => {
      const { span, packed } = begin('tell', message);
      try {
        if (sender === undefined) target.tell(packed);
        else target.tell(packed, sender);
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
    ask: async <R>(message: T, timeoutMs?: number) => {
      const { span, packed } = begin('ask', message);
      try {
        return await target.ask<R>(packed, timeoutMs);
      } catch (error) {
        fail(span, error);
        throw error;
      } finally {
        span.end();
      }
    },
  };
}

type AnyActorClass = abstract new (...args: any[]) => Actor<any>;

/**
 * The same class, whose handler runs in a span of its own below the sender's. Keys, kinds and constructors stay as they are.
 * Messages without a context are handled as before, in a span without a parent. Not for actors that use `context.become`:
 * behaviours put on that way get messages before this can unpack them.
 */
export function traced<C extends AnyActorClass>(actorClass: C, options: TracingOptions = {}): C {
  const handle: (this: Actor<any>, message: unknown) => void | Promise<void> = actorClass.prototype.onReceive;
  abstract class Traced extends actorClass {
    override onReceive(received: unknown): void | Promise<void> {
      const { message, carried } = unpack(received);
      const parent = carried === undefined ? context.active() : propagation.extract(context.active(), carried);
      const { path } = this.context.self;
      const { epoch, possibleRepeat } = this.context;
      const span = tracerOf(options).startSpan(`handle ${path}`, {
        kind: SpanKind.CONSUMER,
        attributes: {
          ...attributesOf(path, message),
          'singlet.epoch': epoch,
          'singlet.possible_repeat': possibleRepeat,
        },
      }, parent);
      return within(trace.setSpan(parent, span), span, () => handle.call(this, message));
    }
  }
  // Spawning by class name goes on to work.
  Object.defineProperty(Traced, 'name', { value: actorClass.name });
  return Traced as unknown as C;
}

function within(active: Context, span: Span, run: () => void | Promise<void>): void | Promise<void> {
  let result: void | Promise<void>;
  try {
    result = context.with(active, run);
  } catch (error) {
    fail(span, error);
    span.end();
    throw error;
  }
  if (result === undefined) {
    span.end();
    return;
  }
  return result.catch((error) => {
    fail(span, error);
    throw error;
  }).finally(() => span.end());
}

function tracerOf({ tracer }: TracingOptions): Tracer {
  return tracer ?? trace.getTracer('singlet');
}

function carriedBy(active: Context): Carried {
  const carrier: Carried = {};
  propagation.inject(active, carrier);
  return carrier;
}

/** Never the content of a message. */
function attributesOf(path: string, message: unknown): Record<string, string> {
  const kind = typeof message === 'object' && message !== null ? (message as { kind?: unknown }).kind : undefined;
  return {
    'messaging.system': 'singlet',
    'messaging.destination.name': path,
    ...(typeof kind === 'string' ? { 'singlet.message.kind': kind.slice(0, 128) } : {}),
  };
}

function fail(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : String(error));
  span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
}
