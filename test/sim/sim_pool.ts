/** As many simulating processes as there are processors. Whichever is free takes the next job, so that all end together. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { done, type SimAnswer, type SimJob } from './sim_job.ts';
import { parallel, root, workerCommand } from './sim_process.ts';

/** `output`: what was printed about a failure. */
export interface SimOutcome {
  readonly answer: SimAnswer | undefined;
  readonly output: string;
}

interface Waiting {
  readonly job: SimJob;
  readonly answered: (outcome: SimOutcome) => void;
}

/** Far above what the slowest job takes on a busy machine. */
const jobTimeoutMs = 300_000;

export class SimPool {
  #waiting: Waiting[] = [];
  #workers = 0;

  run(job: SimJob): Promise<SimOutcome> {
    return new Promise((answered) => {
      this.#waiting.push({ job, answered });
      if (this.#workers < parallel) this.#start();
    });
  }

  #start(): void {
    this.#workers += 1;
    const [program, ...args] = workerCommand;
    const child = spawn(program!, [...args, 'test/sim/sim_worker.ts'], {
      cwd: root,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined },
    });
    let at: Waiting | undefined;
    let output = '';
    let limit: ReturnType<typeof setTimeout> | undefined;
    const finish = (answer: SimAnswer | undefined): void => {
      clearTimeout(limit);
      at?.answered({ answer, output });
      at = undefined;
      output = '';
    };
    const next = (): void => {
      at = this.#waiting.shift();
      if (at === undefined) return void child.stdin.end();
      limit = setTimeout(() => child.kill('SIGKILL'), jobTimeoutMs);
      child.stdin.write(`${JSON.stringify(at.job)}\n`);
    };
    eachLine(child, (line) => {
      if (!line.startsWith(done)) return void (output += `${line}\n`);
      finish(JSON.parse(line.slice(done.length)) as SimAnswer);
      next();
    });
    // What a worker did not do before it ended, others do.
    child.on('close', (code, signal) => {
      output += `the simulating process ended: code ${code}, signal ${signal}\n`;
      finish(undefined);
      this.#workers -= 1;
      if (this.#waiting.length > 0) this.#start();
    });
    child.on('error', (error) => (output += `${error.message}\n`));
    // It may have ended while it was being written to: `close` says so.
    child.stdin.on('error', () => undefined);
    next();
  }
}

function eachLine(child: ChildProcessWithoutNullStreams, take: (line: string) => void): void {
  createInterface({ input: child.stdout }).on('line', take);
  createInterface({ input: child.stderr }).on('line', take);
}
