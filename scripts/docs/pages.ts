/** Pages of documentation, as the tests look at them: code blocks, headings, links. Pure. */

export interface Block {
  readonly page: string;
  /** Of the first line of its content. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

export interface Link {
  readonly page: string;
  readonly line: number;
  readonly target: string;
}

const fence = /^(\s*)```\s*(\S*)\s*$/;

export function blocksOf(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  let open: { language: string; line: number; lines: string[] } | undefined;
  text.split('\n').forEach((content, index) => {
    const found = fence.exec(content);
    if (open === undefined) {
      if (found !== null) open = { language: found[2] ?? '', line: index + 2, lines: [] };
    } else if (found !== null && found[2] === '') {
      blocks.push({ page, line: open.line, language: open.language, text: open.lines.join('\n') });
      open = undefined;
    } else open.lines.push(content);
  });
  if (open !== undefined) throw new Error(`${page}:${open.line - 1}: a code block has no end`);
  return blocks;
}

/** The file that a block is meant to be, from its first line: `// app.ts`. */
export function fileOf({ text }: Block): string | undefined {
  return /^\/\/ ([\w-]+\.ts)$/m.exec(text.split('\n', 1)[0]!)?.[1];
}

/** Without what stands in code. */
function prose(text: string): string {
  let inside = false;
  return text.split('\n').map((line) => {
    if (fence.test(line)) {
      inside = !inside;
      return '';
    }
    return inside ? '' : line.replace(/`[^`]*`/g, (code) => ' '.repeat(code.length));
  }).join('\n');
}

export function linksOf(page: string, text: string): Link[] {
  const plain = prose(text);
  return [...plain.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => ({
    page,
    line: plain.slice(0, match.index).split('\n').length,
    target: match[1] ?? '',
  }));
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  let inside = false;
  for (const line of text.split('\n')) {
    if (fence.test(line)) inside = !inside;
    const heading = inside ? null : /^#{1,6}\s+(.*?)\s*$/.exec(line);
    if (heading === null) continue;
    const words = (heading[1] ?? '').toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
    anchors.add(words);
  }
  return anchors;
}

/** Commands of a shell block: comments away, continued lines joined. */
export function commandsOf(block: Block): { readonly line: number; readonly words: readonly string[] }[] {
  const commands: { line: number; words: string[] }[] = [];
  let held = '';
  block.text.split('\n').forEach((content, index) => {
    const line = held + content.replace(/(^|\s)#.*$/, '').trim();
    if (line.endsWith('\\')) {
      held = `${line.slice(0, -1).trim()} `;
      return;
    }
    held = '';
    for (const command of line.split(/\s*(?:&&|\|\||\||;)\s*|\s+&$/)) {
      const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map((word) =>
        word[1] ?? word[2] ?? word[3] ?? ''
      );
      const redirected = words.indexOf('>');
      if (redirected >= 0) words.length = redirected;
      if (words.length > 0) commands.push({ line: block.line + index, words });
    }
  });
  return commands;
}

/** Names that an entry point exports, from its text; `star` gives the text of what it exports as a whole. */
export function exportedNames(text: string, star: (specifier: string) => string | undefined): Set<string> {
  const names = new Set<string>();
  for (const [, list = ''] of text.matchAll(/export\s+(?:type\s+)?\{([^}]*)\}/g)) {
    for (const part of list.split(',')) {
      const name = part.trim().replace(/^type\s+/, '').replace(/^\S+\s+as\s+/, '');
      if (name !== '') names.add(name);
    }
  }
  const declared = /export\s+(?:declare\s+)?(?:abstract\s+)?(?:class|function|const|interface|type)\s+(\w+)/g;
  for (const [, name = ''] of text.matchAll(declared)) names.add(name);
  for (const [, specifier = ''] of text.matchAll(/export\s+\*\s+from\s+'([^']+)'/g)) {
    const inner = star(specifier);
    if (inner !== undefined) { for (const name of exportedNames(inner, () => undefined)) names.add(name); }
  }
  return names;
}

/**
 * A block as a module of its own: what it uses of the package and does not import or declare is imported, so that a fragment
 * need not repeat the imports of the block above it. One that imports anything of the package must import all that it uses.
 */
export function asModule(block: Block, entries: ReadonlyMap<string, ReadonlySet<string>>): string {
  const { text } = block;
  const used = new Set([...text.matchAll(/(?<![.\w'"`/-])[A-Za-z_]\w*/g)].map((match) => match[0]));
  const own = new Set([
    ...[...text.matchAll(/\b(?:class|const|let|function|type|interface)\s+(\w+)/g)].map((match) => match[1] ?? ''),
    ...[...text.matchAll(/import\s+(?:type\s+)?\{([^}]*)\}/g)].flatMap((match) =>
      (match[1] ?? '').split(',').map((part) => part.trim().replace(/^type\s+/, '').replace(/^\S+\s+as\s+/, ''))
    ),
  ]);
  // Whoever copies a block with imports takes them for all that it needs.
  const whole = /^import .* from 'singlet/m.test(text);
  const imports: string[] = [];
  const taken = new Set<string>();
  for (const [specifier, names] of whole ? [] : entries) {
    const needed = [...names].filter((name) => used.has(name) && !own.has(name) && !taken.has(name));
    needed.forEach((name) => taken.add(name));
    // `import type` would not do for values, and a plain one not for types; this does for both.
    if (needed.length > 0) imports.push(`import { ${needed.join(', ')} } from '${specifier}';`);
  }
  // One line, so that lines keep their distance.
  return `${imports.join(' ')}\n${text}\nexport {};\n`;
}
