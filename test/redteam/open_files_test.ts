/** More connections than the process may have files open: the node takes no new ones, and is there again when they end. */
import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { runtime } from '#runtime';
import { pause } from '../transport/local_environment.ts';

const secret = 'the secret of this red team';
const files = 192;

test(
  'S7: more connections than a node may have files open: its singletons run on, or stop in order, and it is there again',
  {
    timeout: 90_000,
  },
  async () => {
    const { file, args } = runtimeCommand(runtime.name as RuntimeName, true);
    // `exec`, so that the limit is that of the node and of nobody else.
    const limited = [
      '-c',
      `ulimit -n ${files}; exec "$0" "$@"`,
      file,
      ...args,
      'node.ts',
      '--port',
      '0',
      '--secret',
      secret,
    ];
    const child = spawn('bash', limited, { cwd: repositoryRoot, stdio: ['ignore', 'pipe', 'ignore'] });
    const sockets: Socket[] = [];
    try {
      const [, port, uid] = await new Promise<RegExpExecArray>((resolve) =>
        createInterface({ input: child.stdout! }).on('line', (line) => {
          const match = /^node \S+:(\d+) uid (\S+)/.exec(line);
          if (match !== null) resolve(match);
        })
      );
      const members = async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/cluster/members`, { signal: AbortSignal.timeout(2_000) });
        return (await answer.json() as { members: { uid: string; status: string }[] }).members;
      };
      for (let n = 0; n < files + 100; n++) {
        const socket = connect({ host: '127.0.0.1', port: Number(port) });
        socket.on('error', () => {});
        sockets.push(socket);
        if (n % 20 === 19) await pause(10);
      }
      await pause(1_500);
      assertEquals(child.exitCode, null);
      for (const socket of sockets) socket.destroy();
      let now: { uid: string; status: string }[] = [];
      for (const end = performance.now() + 45_000; now[0]?.status !== 'up' && performance.now() < end;) {
        await pause(200);
        now = await members().catch(() => []);
      }
      assertEquals([now.length, now[0]?.status, child.exitCode], [1, 'up', null]);
      // The listener of Deno does not outlive it: who has lost its listener stops what it hosts and joins as somebody new.
      if (runtime.name !== 'deno') assert(now[0]!.uid === uid);
    } finally {
      for (const socket of sockets) socket.destroy();
      child.kill('SIGKILL');
    }
  },
);
