/** What `#runtime` resolves to: the adapter of the runtime this program runs on (see `imports` in package.json). */
import type { Dialler, Runtime } from './runtime.ts';
export declare const runtime: Runtime;
export declare const dialler: Dialler;
