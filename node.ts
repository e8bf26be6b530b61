/**
 * A ready-made node: `bun run node.ts`, `deno run --allow-net node.ts`, `node node.ts` (22.18 or newer). See `--help`.
 */
import { runtime } from '#runtime';
import { main } from './node/main.ts';

await main(runtime);
