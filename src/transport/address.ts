/** Addresses are `host:port`; an IPv6 host is written in brackets. Pure text, no name is ever resolved here. */
import { coreLimits as limits } from '../limits.ts';
import type { Address } from './contract.ts';

export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const hostPattern = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const ipv6Pattern = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*$/;

/** A DNS name, an IPv4 or an IPv6 literal (without brackets). */
export function isHost(host: string): boolean {
  if (host.length === 0 || host.length > limits.hostChars) return false;
  return hostPattern.test(host) || ipv6Pattern.test(host);
}

export function formatAddress(host: string, port: number): Address {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Undefined when the text is no `host:port` with a port of 0 … 65535. */
export function parseAddress(address: string): HostAndPort | undefined {
  if (address.length > limits.hostChars + 8) return undefined;
  const parts = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address);
  if (parts === null) return undefined;
  const host = parts[1] ?? parts[2] ?? '';
  const port = Number(parts[3]);
  if (port > 65_535 || !isHost(host) || (parts[1] !== undefined && !host.includes(':'))) return undefined;
  return { host, port };
}

/** 127.0.0.0/8, ::1 and `localhost`: reachable from this machine (and network namespace) only. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

export function isLoopbackAddress(address: Address): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && isLoopbackHost(parsed.host);
}

/** Means "every interface" when bound, and nothing at all when dialled. */
export function isWildcardHost(host: string): boolean {
  return host === '' || host === '*' || /^0+(\.0+){0,3}$/.test(host) || /^[0:]*:[0:]*$/.test(host);
}
