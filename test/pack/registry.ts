/** A registry for one package that is not published; it sends everybody on to the real one for all others. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Registry {
  readonly url: string;
  stop(): Promise<void>;
}

export async function startRegistry(name: string, tarball: string): Promise<Registry> {
  const real = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim().replace(/\/?$/, '/');
  const bytes = readFileSync(tarball);
  const manifest = JSON.parse(execFileSync('tar', ['xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }));
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (path === `/${name}`) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(packument()));
    } else if (path === `/${name}.tgz`) response.end(bytes);
    else response.writeHead(302, { location: `${real}${path.slice(1)}` }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const packument = () => {
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const version = { ...manifest, dist: { tarball: `${url}${name}.tgz`, integrity } };
    return { name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: version } };
  };
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url, stop };
}
