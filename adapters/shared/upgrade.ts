/** Who may upgrade, decided the same way on every runtime. */
import type { ListenOptions, UpgradeEndpoint } from '../../src/transport/runtime.ts';

export interface UpgradeRefusal {
  readonly status: number;
  readonly text: string;
}

/** Who takes upgrades on `path`; undefined for the paths of ordinary requests. */
export function endpointFor(options: ListenOptions, path: string | undefined): UpgradeEndpoint | undefined {
  if (path === options.socketPath) return options;
  return options.endpoints?.find((endpoint) => endpoint.socketPath === path);
}

/** No upgrade is admitted any more once `open` says so. */
export function admittingWhile(open: () => boolean, options: ListenOptions): ListenOptions {
  const admitting = <E extends UpgradeEndpoint>(endpoint: E): E => ({
    ...endpoint,
    admit: () => open() && endpoint.admit(),
  });
  const { endpoints } = options;
  return { ...admitting(options), ...(endpoints === undefined ? {} : { endpoints: endpoints.map(admitting) }) };
}

/** `header` returns the request header of that (lower-case) name. Undefined: go on with the upgrade. */
export function upgradeRefusal(
  options: Pick<UpgradeEndpoint, 'subprotocol' | 'admit' | 'admitOrigin' | 'socketPath'>,
  header: (name: string) => string | null | undefined,
): UpgradeRefusal | undefined {
  if ((header('upgrade') ?? '').toLowerCase() !== 'websocket') {
    return { status: 426, text: `${options.socketPath} takes WebSocket connections only\n` };
  }
  const offered = (header('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim());
  if (!offered.includes(options.subprotocol)) {
    return { status: 400, text: `the WebSocket subprotocol must be ${options.subprotocol}\n` };
  }
  const origin = header('origin') ?? '';
  if (origin !== '' && options.admitOrigin !== undefined && !options.admitOrigin(origin)) {
    return { status: 403, text: 'this page may not connect to the cluster\n' };
  }
  if (!options.admit()) return { status: 503, text: 'too many connections\n' };
  return undefined;
}

export function refusalHeaders(refusal: UpgradeRefusal): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'text/plain; charset=utf-8', 'connection': 'close' };
  if (refusal.status === 426) headers['upgrade'] = 'websocket';
  return headers;
}

export function refusalResponse(refusal: UpgradeRefusal): Response {
  const headers = refusalHeaders(refusal);
  delete headers['connection'];
  return new Response(refusal.text, { status: refusal.status, headers });
}

/** The path a request asks for; undefined for a Host header that is none. Old clients send no Host at all. */
export function pathOf(url: string): string | undefined {
  return URL.canParse(url, 'http://localhost') ? new URL(url, 'http://localhost').pathname : undefined;
}

export function badRequest(): Response {
  return Response.json(
    {
      error: {
        code: 'bad-request',
        message: 'The Host header or the path is malformed.',
        hint: 'Send HTTP/1.1 with a Host.',
      },
    },
    { status: 400 },
  );
}

/** A handler that throws costs its caller a 500 and nobody else anything. */
export async function guardedFetch(
  fetch: ListenOptions['fetch'],
  request: Request,
): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    return new Response('internal error\n', { status: 500 });
  }
}
