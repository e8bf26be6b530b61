/** A caller of `callers_test.ts` as a process: its options as JSON, its report as the last line. */
import { runtime } from '#runtime';
import { type LoadOptions, runLoad } from './caller_load.ts';

const options = JSON.parse(runtime.args()[0] ?? '{}') as LoadOptions;
const report = await runLoad({ ...options, onUrl: (url) => console.log(`connected ${url}`) });
console.log(`report ${JSON.stringify(report)}`);
