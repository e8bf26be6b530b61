/** The options of `Cluster.connect`. */
import type { Environment, Logger } from '../actor/environment.ts';
import {
  booleanRule,
  checkOptions,
  durationRule,
  functionRule,
  integerRule,
  objectRule,
  oneOfRule,
  OptionsError,
  type Rule,
  type Rules,
  textRule,
} from '../actor/options.ts';
import { isToken, tokenRule } from '../transport/token.ts';
import { coreLimits as limits } from '../limits.ts';
import type { DeliveryMode, OverflowPolicy } from '../singleton/sender_stream.ts';
import type { Runtime } from '../transport/runtime.ts';
import { type CallerDial, callerUrl } from './dial.ts';

/** Options of `connect` and `Cluster.connect`. Only the token is required. */
export interface ConnectOptions {
  /** One that the nodes list in `ClusterOptions.callers`. It never travels: both sides prove that they know it. */
  readonly token: string;
  /** The cluster this caller means; one of another name refuses it. Default: whatever answers. */
  readonly clusterName?: string;
  /** `connect` fails after this; a caller that was connected once never gives up. Default 10 000 ms. */
  readonly connectTimeoutMs?: number;
  /** `close()` waits at most so long for what was told to be acknowledged. Default 5 000 ms. */
  readonly closeTimeoutMs?: number;
  /** Messages kept per singleton while they cannot be sent. Default 10 000. */
  readonly bufferSize?: number;
  /** The same in encoded bytes. Default 16 MiB. */
  readonly bufferBytes?: number;
  /** What becomes of one more. Default `drop-newest`. */
  readonly overflow?: OverflowPolicy;
  /** After a crash of the host, what was sent and not acknowledged ends as `outcome-unknown`, or is sent again. */
  readonly delivery?: DeliveryMode;
  /** PEM text of the authority that signed the nodes' certificates; Bun, Deno and Node only. Default: the runtime's. */
  readonly ca?: string;
  /**
   * Asks the node to seal every frame on this connection, for networks where TLS is not wanted: nobody on the path can change,
   * repeat, drop or invent a frame without ending the connection. It hides nothing. A node with
   * `ClusterOptions.frameIntegrity` asks for it too. Default false.
   */
  readonly frameIntegrity?: boolean;
  /** Default: the console, from `warn` on. */
  readonly logger?: Logger;
  /** Ends the attempt to connect. */
  readonly signal?: AbortSignal;
  /** Replaces the runtime found by the package. */
  readonly runtime?: Runtime;
  /** For tests: time, timers and randomness. */
  readonly environment?: Environment;
  /** For tests: replaces WebSocket and handshake. */
  readonly dial?: CallerDial;
}

const family = 'ConnectOptions';

const optionRules: Rules<ConnectOptions> = {
  token: { rule: tokenRule, accepts: isToken },
  clusterName: textRule(limits.typeNameChars),
  connectTimeoutMs: durationRule(1),
  closeTimeoutMs: durationRule(0),
  bufferSize: integerRule(0, limits.proxyBuffer),
  bufferBytes: integerRule(1, limits.proxyBufferBytes),
  overflow: oneOfRule('drop-newest', 'drop-oldest', 'fail-ask'),
  delivery: oneOfRule('at-most-once', 'at-least-once'),
  ca: pem(),
  frameIntegrity: booleanRule,
  logger: objectRule,
  signal: objectRule,
  runtime: objectRule,
  environment: objectRule,
  dial: functionRule,
};

function pem(): Rule {
  const accepts = (value: unknown): boolean => typeof value === 'string' && value.includes('-----BEGIN');
  return { rule: 'must be a PEM text (not a path)', accepts };
}

export interface CheckedConnect {
  readonly urls: readonly string[];
  readonly options: ConnectOptions;
}

/** @throws OptionsError for the first bad value; it never shows the token */
export function checkConnect(urls: string | readonly string[], options: ConnectOptions): CheckedConnect {
  const list: unknown = typeof urls === 'string' ? [urls] : urls;
  if (!Array.isArray(list) || list.length === 0 || list.length > limits.callerUrls) {
    throw new OptionsError(family, 'urls', urls, `must be 1 to ${limits.callerUrls} addresses`);
  }
  const addresses = list.map((text) => {
    const url = typeof text === 'string' && text.length <= limits.urlChars ? callerUrl(text) : undefined;
    if (url === undefined) {
      const rule = 'must be host:port or a ws(s):// or http(s):// URL without credentials, query or fragment';
      // What stands before an @ or after a ? may be a password.
      throw new OptionsError(family, 'urls', /[@?]/.test(String(text)) ? '(hidden)' : text, rule);
    }
    return url;
  });
  if (typeof options !== 'object' || options === null || !isToken(options.token)) {
    const given = (options as Partial<ConnectOptions> | null | undefined)?.token;
    throw new OptionsError(
      family,
      'token',
      given === undefined ? undefined : '(hidden)',
      `${tokenRule}; callers need one on this machine too`,
    );
  }
  checkOptions(family, options, optionRules);
  return { urls: [...new Set(addresses)], options };
}
