// Starts a TypeScript program of this repository with a Node that can run it: `node scripts/launch.mjs FILE [arguments]`.
// This file itself runs on every Node from 20 on; the Node 24 it looks for comes with `npm i`.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [major, minor] = process.versions.node.split('.').map(Number);
const runsTypeScript = major > 22 || (major === 22 && minor >= 18);
const installed = ['node24', 'node24-linux-arm64']
  .map((name) => `${root}node_modules/${name}/bin/node`)
  .find((path) => existsSync(path));
const node = installed ?? (runsTypeScript ? process.execPath : undefined);

if (node === undefined) {
  console.error(
    `This needs Node 22.18 or newer; this is Node ${process.versions.node}, and there is no Node 24 package for ` +
      `${process.platform}-${process.arch} in node_modules. Run \`npm i\` first, or use a newer Node.`,
  );
  process.exit(1);
}

const child = spawn(node, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`Cannot start ${node}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 1)));
