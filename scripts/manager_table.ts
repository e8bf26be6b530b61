/** Writes docs/manager_states.md from the manager itself. */
import { writeFile } from 'node:fs/promises';
import { document } from '../test/singleton/manager_table.ts';

await writeFile(new URL('../docs/manager_states.md', import.meta.url), document());
