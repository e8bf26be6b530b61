/** `singlet journal check DIRECTORY`. */
import { existsSync } from 'node:fs';
import { checkJournal, type JournalReport } from '../adapters/shared/file_journal/mod.ts';
import type { CommandContext } from './context.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';
import { paint, plain } from './output.ts';

export async function journalCheck(context: CommandContext): Promise<ExitCode> {
  const directory = context.operands[0] ?? '';
  const { terminal, json } = context;
  if (terminal.watched) terminal.progress(`reading ${plain(directory)}`);
  let reports: readonly JournalReport[];
  try {
    reports = existsSync(directory) ? await checkJournal(directory) : [];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(exitCodes.notAsExpected, 'unreadable', `${directory} cannot be read: ${why}`);
  } finally {
    terminal.progress('');
  }
  if (reports.length === 0) {
    const hint = 'Give the directory that openFileStores, or --journal of the ready-made node, was given.';
    throw new CliError(exitCodes.notAsExpected, 'no-journal', `There are no file stores in ${directory}.`, hint);
  }
  const damaged = reports.some((report) => report.damage !== undefined);
  if (json) terminal.out(JSON.stringify({ directory, damaged, logs: reports.map(plainReport) }));
  else for (const report of reports) terminal.out(describe(report, terminal.colours));
  return damaged ? exitCodes.notAsExpected : exitCodes.done;
}

function plainReport({ damage, wouldDrop, ...report }: JournalReport): object {
  return { ...report, damage: damage?.message ?? null, wouldDrop: wouldDrop ?? null };
}

function describe(report: JournalReport, colours: boolean): string {
  const { log, segments, records, ids, cut, damage, wouldDrop } = report;
  if (damage !== undefined) {
    const repair = wouldDrop === undefined
      ? 'repairJournal can do nothing about it: restore a copy'
      : `repairJournal would give up ${wouldDrop.bytes} bytes of ${wouldDrop.path} from byte ${wouldDrop.position}, ` +
        `with these readable events: ${wouldDrop.readableEvents.join(', ') || 'none'}`;
    return `${log}: ${paint('damaged', 'bad', colours)}: ${plain(damage.message)}\n  ${plain(repair)}`;
  }
  const lines = [`${log}: ${paint('good', 'good', colours)}: ${segments} segments, ${records} records, ${ids} ids`];
  for (const { path, position, bytes, detail } of cut) {
    lines.push(
      `  ${
        plain(path)
      }: ${bytes} bytes from byte ${position} were never acknowledged (${detail}); opening cuts them off`,
    );
  }
  return lines.join('\n');
}
