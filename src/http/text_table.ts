/** Answers for terminals: columns side by side, and nothing that a terminal would obey. */

/** Without control characters: names and versions come from other nodes. */
export function plain(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?');
}

/** One line each, the columns as wide as they need. `null` and empty cells are a dash. */
export function textTable(head: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell === null || cell === '' ? '-' : plain(`${cell}`)));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd()}\n`).join(
    '',
  );
}
