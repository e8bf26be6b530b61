/** Why a dial failed. */
import type { Cancel } from '../../src/actor/environment.ts';
import type { ProbeOutcome } from '../../src/transport/contract.ts';
import type { DialOptions } from '../../src/transport/runtime.ts';
import { probeTcp } from './tcp_probe.ts';
import type { DialOutcome } from './web_socket_dial.ts';

/** The web API says only *that* a dial failed; a TCP connect to the same place tells why. */
export function explainFailure(
  options: DialOptions,
  text: string,
  settle: (outcome: DialOutcome) => void,
): Cancel {
  const url = new URL(options.url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'wss:' ? 443 : 80) : Number(url.port);
  return probeTcp(host, port, options.timeoutMs, (outcome) => settle(explained(outcome, text)));
}

function explained(outcome: ProbeOutcome, text: string): DialOutcome {
  switch (outcome) {
    case 'refused':
      return { reason: 'refused', detail: 'connection refused' };
    case 'timeout':
      return { reason: 'timeout', detail: text };
    case 'open':
      return { reason: 'other', detail: `something listens there but did not accept the WebSocket: ${text}` };
    case 'other':
      return { reason: 'other', detail: text };
    default:
      return outcome satisfies never;
  }
}
