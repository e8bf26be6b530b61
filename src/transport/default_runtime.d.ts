/** What `#runtime` resolves to: the adapter of the runtime this program runs on (see `imports` in package.json). */
import type { Runtime } from './runtime.ts';
export declare const runtime: Runtime;
