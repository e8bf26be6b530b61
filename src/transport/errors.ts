/** Errors of listening and of the transport's options. */

/** Why a bind failed. `unsupported`: this runtime cannot listen at all, or a package it needs is missing. */
export type ListenCause = 'port-in-use' | 'permission' | 'no-such-address' | 'unsupported' | 'other';

const causeTexts: Readonly<Record<ListenCause, string>> = {
  'port-in-use': 'port in use',
  'permission': 'permission denied',
  'no-such-address': 'no such address on this machine',
  'unsupported': 'not supported here',
  'other': 'failed',
};

/** A listener could not be bound. Names host, port and cause. */
export class ListenError extends Error {
  readonly host: string;
  readonly port: number;
  readonly why: ListenCause;

  constructor(host: string, port: number, why: ListenCause, detail = '') {
    super(`cannot listen on ${host} port ${port}: ${causeTexts[why]}${detail === '' ? '' : ` (${detail})`}`);
    this.name = 'ListenError';
    this.host = host;
    this.port = port;
    this.why = why;
  }
}

/** A bad option of a transport: names the field, the value and the rule it breaks. */
export class TransportOptionsError extends Error {
  readonly field: string;
  readonly rule: string;

  constructor(field: string, value: unknown, rule: string) {
    super(`transport option ${field} = ${printed(value)}: ${rule}`);
    this.name = 'OptionsError';
    this.field = field;
    this.rule = rule;
  }
}

function printed(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 200));
  if (value === null || typeof value !== 'object') return String(value);
  return Array.isArray(value) ? 'an array' : 'an object';
}
