/**
 * A ready-made node: `bun run node.ts`, `deno run --allow-net node.ts`, `node node.ts` (22.18 or newer). See `--help`.
 */
import { runtime } from '#runtime';
import { keepCompiledCode } from './node/compile_cache.ts';

if (runtime.name === 'node') keepCompiledCode();
const { main } = await import('./node/main.ts');

await main(runtime);
