/** The two packages that only Node needs, loaded when first used so that a program that needs neither can do without. */
import type * as NodeServer from '@hono/node-server';
import type * as Ws from 'ws';

export type WsModule = typeof Ws;

export function loadWs(): Promise<WsModule> {
  return import('ws');
}

export function loadNodeServer(): Promise<typeof NodeServer> {
  return import('@hono/node-server');
}
