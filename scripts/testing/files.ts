/** The files of the working tree, as paths with `/`, relative to the root. Runs on Bun, Deno and Node. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root: string = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');

const ignoredFolders = new Set(['node_modules', 'dist', '.git', '.tmp']);
const ignoredFiles = /\.(tgz|log)$|^\.DS_Store$|^(deno|bun)\.lock$/;

export function listFiles(folder = ''): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(`${root}/${folder}`, { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (!ignoredFolders.has(entry.name)) found.push(...listFiles(path));
    } else if (entry.isFile() && !ignoredFiles.test(entry.name)) found.push(path);
  }
  return found.sort();
}
