/** A message together with a trace context, as W3C names it. Pure; bounded, since the other end may be anybody. */

export interface Carried {
  traceparent?: string;
  tracestate?: string;
}

const mark = 'singlet.trace';
const traceparentRule = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
/** The W3C asks that at least this much be passed on. */
const tracestateChars = 512;
/** It may end up in logs and headers. */
const tracestateRule = /^[\x20-\x7e]+$/;

/** The message as it is where there is no context to carry. */
export function pack(message: unknown, carried: Carried): unknown {
  const { traceparent, tracestate } = checked(carried) ?? {};
  if (traceparent === undefined) return message;
  return { [mark]: tracestate === undefined ? [traceparent] : [traceparent, tracestate], message };
}

export interface Unpacked {
  readonly message: unknown;
  readonly carried: Carried | undefined;
}

/** A context that is not well-formed is left out; the message is there in any case. */
export function unpack(received: unknown): Unpacked {
  if (typeof received !== 'object' || received === null || !Object.hasOwn(received, mark)) {
    return { message: received, carried: undefined };
  }
  const { [mark]: context, message } = received as { [mark]: unknown; message: unknown };
  const [traceparent, tracestate] = Array.isArray(context) ? context : [];
  return { message, carried: checked({ traceparent, tracestate }) };
}

function checked({ traceparent, tracestate }: { traceparent?: unknown; tracestate?: unknown }): Carried | undefined {
  if (typeof traceparent !== 'string' || !traceparentRule.test(traceparent)) return undefined;
  const text = typeof tracestate === 'string' && tracestate.length <= tracestateChars;
  return text && tracestateRule.test(tracestate) ? { traceparent, tracestate } : { traceparent };
}
