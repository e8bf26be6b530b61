/**
 * A light reading of TypeScript for the tidy rules: no parser, only a scanner that knows strings, templates, comments and
 * regular expressions, so that a rule never trips over a word in a text.
 */

export interface Problem {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i !== -1 && i < index; i = text.indexOf('\n', i + 1)) line += 1;
  return line;
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

/**
 * The text with comments, and the contents of strings, templates and regular expressions, replaced by spaces; lines and
 * offsets stay the same. `${…}` in a template is kept, since it is code.
 */
export function maskText(text: string): string {
  let masked = '';
  let i = 0;
  /** Depth of braces at which each open `${` ends. */
  const templates: number[] = [];
  let depth = 0;
  const skipTo = (end: number) => {
    masked += blank(text.slice(i, end));
    i = end;
  };
  while (i < text.length) {
    const rest = text.startsWith('//', i) ? '//' : text.startsWith('/*', i) ? '/*' : text[i] ?? '';
    if (rest === '//') skipTo(orEnd(text, text.indexOf('\n', i)));
    else if (rest === '/*') skipTo(orEnd(text, text.indexOf('*/', i), 2));
    else if (rest === "'" || rest === '"') skipTo(endOfString(text, i));
    else if (rest === '/' && startsRegex(masked)) skipTo(endOfRegex(text, i));
    else if (rest === '`' || (rest === '}' && templates.at(-1) === depth)) {
      if (rest === '}') templates.pop();
      const end = endOfTemplate(text, i + 1);
      skipTo(end);
      if (text[end - 1] === '{') templates.push(depth);
    } else {
      if (rest === '{') depth += 1;
      if (rest === '}') depth -= 1;
      masked += rest;
      i += 1;
    }
  }
  return masked;
}

function orEnd(text: string, index: number, more = 0): number {
  return index === -1 ? text.length : index + more;
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === text[start] || text[i] === '\n') return i + 1;
  }
  return text.length;
}

/** Just behind the closing backtick, or behind the `${` that interrupts the template. */
function endOfTemplate(text: string, start: number): number {
  for (let i = start; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '`') return i + 1;
    else if (text[i] === '$' && text[i + 1] === '{') return i + 2;
  }
  return text.length;
}

/** A slash begins a regular expression where no value stands before it. */
function startsRegex(before: string): boolean {
  const trimmed = before.trimEnd();
  return trimmed === '' || /[(,=:[!&|?{};<>+\-*%~^]$|\b(?:return|typeof|case|in|of|do|else|void|throw)$/.test(trimmed);
}

function endOfRegex(text: string, start: number): number {
  let inClass = false;
  for (let i = start + 1; i < text.length; i++) {
    const char = text[i];
    if (char === '\\') i += 1;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '\n' || (char === '/' && !inClass)) return i + 1;
  }
  return text.length;
}

export interface Body {
  readonly name: string;
  readonly line: number;
  readonly lines: number;
}

const notFunctions = /^(?:if|for|while|switch|catch|with)\b/;

/** Function, method and arrow bodies in braces, by a look at what stands before each `{`. */
export function listBodies(masked: string): Body[] {
  const bodies: Body[] = [];
  const open: { start: number; name: string | undefined }[] = [];
  for (let i = 0; i < masked.length; i++) {
    if (masked[i] === '{') open.push({ start: i, name: bodyName(masked, i) });
    if (masked[i] !== '}') continue;
    const body = open.pop();
    if (body?.name === undefined) continue;
    const line = lineAt(masked, body.start);
    bodies.push({ name: body.name, line, lines: lineAt(masked, i) - line + 1 });
  }
  return bodies;
}

/** Undefined when the brace at `index` does not open a function body. */
function bodyName(masked: string, index: number): string | undefined {
  const before = masked.slice(Math.max(0, index - 2_000), index).trimEnd();
  if (before.endsWith('=>')) return nameBefore(before, /(?:const|let)\s+(\w+)[^;{}]*$|(\w+)\s*[:=(]\s*[^;{}]*$/);
  // The head: parameters in balanced parentheses, then perhaps a return type without braces.
  const returnType = /\)\s*(?::[^(){};]*(?:\([^(){};]*\)[^(){};]*)*)?$/.exec(before);
  if (returnType === null) return undefined;
  const parameters = openingParenthesis(before, returnType.index);
  const head = before.slice(0, parameters).trimEnd();
  const word = /[\w$#\]]+(?:<[^(){};]*>)?$/.exec(head)?.[0];
  return word === undefined || notFunctions.test(word) ? undefined : word.replace(/<.*/, '');
}

function nameBefore(before: string, pattern: RegExp): string {
  const found = pattern.exec(before);
  return found?.[1] ?? found?.[2] ?? 'arrow function';
}

function openingParenthesis(text: string, closing: number): number {
  let depth = 0;
  for (let i = closing; i >= 0; i--) {
    if (text[i] === ')') depth += 1;
    if (text[i] === '(' && --depth === 0) return i;
  }
  return 0;
}

export interface Import {
  readonly line: number;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

/** `import`/`export … from`, side-effect imports and `import('…')`. */
export function listImports(text: string): Import[] {
  const masked = maskText(text);
  const found: Import[] = [];
  const pattern = /\b(import|export)\s+(type\s+)?[^;'"()]*?\bfrom\s*(?=\s)|\bimport\s+(?=\s)|\bimport\(\s*/g;
  for (const match of masked.matchAll(pattern)) {
    const specifier = /^\s*(['"])(.*?)\1/.exec(text.slice(match.index + match[0].trimEnd().length));
    if (specifier === null) continue;
    found.push({ line: lineAt(text, match.index), specifier: specifier[2] ?? '', typeOnly: match[2] !== undefined });
  }
  return found;
}
