/**
 * A fake, not Kubernetes: the leases of `coordination.k8s.io/v1` in memory, with the API's optimistic concurrency (a write
 * must carry the resourceVersion that is stored), its status codes, bearer tokens and a few of its validations.
 */
import type { HttpMeans } from '../../src/coordination/http_means.ts';

interface Stored {
  metadata: Record<string, unknown> & { name: string; resourceVersion: string };
  spec: Record<string, unknown>;
  [field: string]: unknown;
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly token: string;
}

const host = '10.96.0.1';

export class FakeKubernetes implements HttpMeans {
  readonly objects = new Map<string, Stored>();
  readonly calls: Call[] = [];
  /** What the API takes, and what the mounted file holds. */
  accepted = 'token-1';
  mountedToken = 'token-1\n';
  /** Answers that come instead, one per call. */
  readonly instead: { readonly status: number; readonly headers?: Record<string, string> }[] = [];
  /** Runs after a call was applied and before it is answered. */
  delay: (call: Call) => Promise<void> = () => Promise.resolve();
  readonly cas: (string | undefined)[] = [];
  #version = 100;

  readTextFile(path: string): Promise<string> {
    const folder = '/var/run/secrets/kubernetes.io/serviceaccount/';
    if (path === `${folder}token`) return Promise.resolve(this.mountedToken);
    if (path === `${folder}ca.crt`) return Promise.resolve('the mounted authority');
    return Promise.reject(new Error(`no file ${path}`));
  }

  environmentVariable(name: string): string | undefined {
    return { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '6443' }[name];
  }

  async fetch(url: string, init: RequestInit, tls?: { readonly ca?: string }): Promise<Response> {
    const { pathname } = new URL(url);
    const headers = new Headers(init.headers);
    const call: Call = {
      method: init.method ?? 'GET',
      path: pathname,
      token: (headers.get('authorization') ?? '').replace('Bearer ', ''),
    };
    this.calls.push(call);
    this.cas.push(tls?.ca);
    const instead = this.instead.shift();
    if (instead) return status(instead.status, 'injected', instead.headers);
    if (call.token !== this.accepted) return status(401, 'Unauthorized');
    const answer = this.#apply(call, typeof init.body === 'string' ? init.body : '');
    await this.delay(call);
    if (init.signal?.aborted) throw new DOMException('aborted', 'AbortError');
    return answer;
  }

  /** As another client would. */
  edit(name: string, change: (object: Stored) => void): void {
    const stored = this.objects.get(`default/${name}`)!;
    const copy = structuredClone(stored);
    change(copy);
    this.#store('default', copy);
  }

  #apply({ method, path }: Call, body: string): Response {
    const [, namespace = '', , name = ''] = /\/namespaces\/([^/]+)\/leases(\/([^/]+))?$/.exec(path) ?? [];
    const stored = this.objects.get(`${namespace}/${name}`);
    const object = body === '' ? undefined : JSON.parse(body) as Stored;
    if (object && Number(object.spec['leaseDurationSeconds'] ?? 1) <= 0) return status(422, 'must be greater than 0');
    switch (method) {
      case 'GET':
        return stored ? Response.json(stored) : status(404, 'not found');
      case 'POST':
        if (!object) return status(400, 'no body');
        if (this.objects.has(`${namespace}/${object.metadata.name}`)) return status(409, 'already exists');
        return Response.json(this.#store(namespace, object), { status: 201 });
      case 'PUT': {
        if (!stored || !object) return status(404, 'not found');
        if (object.metadata.resourceVersion !== stored.metadata.resourceVersion) {
          return status(409, 'the object has been modified');
        }
        return Response.json(this.#store(namespace, object));
      }
      default:
        return status(405, 'not allowed');
    }
  }

  #store(namespace: string, object: Stored): Stored {
    this.#version += 1;
    const metadata = { ...object.metadata, namespace, resourceVersion: String(this.#version) };
    const stored = structuredClone({ ...object, metadata });
    this.objects.set(`${namespace}/${object.metadata.name}`, stored);
    return stored;
  }
}

function status(code: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ kind: 'Status', status: 'Failure', message, code }, { status: code, headers });
}
