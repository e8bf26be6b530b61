/** The command line tool against the HTTP app of a node that says what a test wants, without sockets. */
import type { Hono } from 'hono';
import { main } from '../../cli/main.ts';
import { makeTerminal } from '../../cli/output.ts';

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Paths that were asked for, with the method. */
  readonly asked: readonly string[];
}

export interface RunOptions {
  readonly app?: Hono;
  readonly variables?: Readonly<Record<string, string>>;
  readonly terminal?: boolean;
  readonly interrupted?: AbortSignal;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Called between two tries, instead of time going by. */
  readonly onPause?: () => void;
}

export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<Run> {
  let out = '';
  let err = '';
  let now = 0;
  const asked: string[] = [];
  const { app, variables = {}, terminal = false, interrupted = new AbortController().signal } = options;
  const fetch = options.fetch ?? (async (url: string, init: RequestInit) => {
    if (app === undefined) throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' });
    asked.push(`${init.method ?? 'GET'} ${new URL(url).pathname}`);
    return await app.request(url, init);
  });
  const code = await main({
    args,
    terminal: makeTerminal({
      write: (text) => {
        out += text;
      },
      writeError: (text) => {
        err += text;
      },
      outIsTerminal: terminal,
      errorIsTerminal: terminal,
      noColour: variables['NO_COLOR'] !== undefined,
    }),
    environmentVariable: (name) => variables[name],
    readTextFile: () => Promise.reject(new Error('no such file')),
    fetch,
    now: () => now,
    wall: () => 61_000,
    pause: (ms) => {
      now += ms;
      options.onPause?.();
      return Promise.resolve();
    },
    interrupted,
  });
  return { code, out, err, asked };
}
