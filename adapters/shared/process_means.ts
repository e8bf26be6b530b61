/** Signals, exit, arguments, files and environment, the same on Bun and Node. */
import { createReadStream } from 'node:fs';
import process from 'node:process';
import { Readable } from 'node:stream';
import type { Runtime } from '../../src/transport/runtime.ts';
import { textFile } from './text_file.ts';

const signals = ['SIGTERM', 'SIGINT'] as const;

export const processMeans: Pick<
  Runtime,
  'onSignal' | 'exit' | 'args' | 'readTextFile' | 'environmentVariable'
> = {
  onSignal(run) {
    const listeners = signals.map((signal) => {
      const listener = () => run(signal);
      process.on(signal, listener);
      return () => process.off(signal, listener);
    });
    return () => listeners.splice(0).forEach((off) => off());
  },
  exit: (code) => process.exit(code),
  args: () => process.argv.slice(2),
  readTextFile: (path) => textFile(path, Readable.toWeb(createReadStream(path)) as ReadableStream<Uint8Array>),
  environmentVariable: (name) => process.env[name],
};
