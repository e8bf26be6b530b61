/** Asks a node over HTTP; everything that can go wrong becomes one `CliError`. */
import { limits } from '../src/limits.ts';
import { readBounded } from '../src/wire/bounded_body.ts';
import { CliError, exitCodes } from './exit_codes.ts';

export interface NodeClientOptions {
  /** Ends in `/`. */
  readonly url: string;
  readonly token: string | undefined;
  /** Of one request. */
  readonly timeoutMs: number;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

interface ErrorAnswer {
  readonly error: { readonly code: string; readonly message: string; readonly hint: string };
}

export class NodeClient {
  readonly #options: NodeClientOptions;

  constructor(options: NodeClientOptions) {
    this.#options = options;
  }

  get url(): string {
    return this.#options.url;
  }

  async get<T>(path: string): Promise<T> {
    return await this.#json<T>(path, {}, [200]);
  }

  /** `/ready` says no with 503 and the same body. */
  async getReady(): Promise<{ readonly ready: boolean; readonly reasons: readonly string[] }> {
    return await this.#json('ready', {}, [200, 503]);
  }

  async post<T>(path: string, body: Readonly<Record<string, string>>): Promise<T> {
    const headers = { 'content-type': 'application/json' };
    return await this.#json<T>(path, { method: 'POST', headers, body: JSON.stringify(body) }, [200, 202]);
  }

  /** A stream that lasts: the time limit is for its beginning only. */
  async open(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new DOMException('no answer in time', 'TimeoutError')), this.#timeoutMs);
    try {
      const response = await this.#request(path, { headers, signal: AbortSignal.any([signal, late.signal]) });
      if (response.status !== 200) throw await this.#problem(response);
      return response;
    } finally {
      clearTimeout(timer);
    }
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs;
  }

  async #json<T>(path: string, init: RequestInit, fine: readonly number[]): Promise<T> {
    const response = await this.#request(path, { ...init, signal: AbortSignal.timeout(this.#timeoutMs) });
    if (!fine.includes(response.status)) throw await this.#problem(response);
    const value = await this.#body(response);
    if (typeof value !== 'object' || value === null) throw this.#noNode(response.status);
    return value as T;
  }

  async #request(path: string, init: RequestInit): Promise<Response> {
    const { url, token, fetch } = this.#options;
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    try {
      // A redirect would carry the token to somebody else.
      return await fetch(`${url}${path}`, { ...init, headers, redirect: 'manual' });
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  async #body(response: Response): Promise<unknown> {
    let text: string;
    try {
      const bytes = await readBounded(response.body, limits.cliAnswerBytes);
      if (bytes === undefined) return undefined;
      text = new TextDecoder().decode(bytes);
    } catch (error) {
      throw this.#unreachable(error);
    }
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  async #problem(response: Response): Promise<CliError> {
    const body = await this.#body(response);
    if (!isErrorAnswer(body)) return this.#noNode(response.status);
    const { code, message, hint } = body.error;
    const token = response.status === 401 || response.status === 403;
    return new CliError(token ? exitCodes.tokenRefused : exitCodes.refused, code, message, hint);
  }

  #noNode(status: number): CliError {
    return new CliError(
      exitCodes.noAnswer,
      'no-node',
      `${this.url} answers (status ${status}), but not as a Singlet node.`,
      'Give the URL under which the app of the node is mounted.',
    );
  }

  #unreachable(error: unknown): CliError {
    if (error instanceof CliError) return error;
    const late = error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
    const why = late ? `no answer within ${this.#timeoutMs} ms` : reasonOf(error);
    return new CliError(exitCodes.noAnswer, 'no-answer', `${this.url} cannot be reached: ${why}.`, '');
  }
}

function isErrorAnswer(body: unknown): body is ErrorAnswer {
  const error = (body as Partial<ErrorAnswer> | null | undefined)?.error;
  return typeof error?.code === 'string' && typeof error.message === 'string' && typeof error.hint === 'string';
}

/** Node hides the reason in `cause`; the others put it into the message. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const inner = cause instanceof Error ? cause : error;
  const code = (inner as { code?: unknown } | null)?.code;
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'connection refused';
  const text = inner instanceof Error ? inner.message : String(inner);
  if (/connection refused/i.test(text)) return 'connection refused';
  return text.replace(/\s*\n\s*/g, ' ').replace(/\.$/, '');
}
