/** `singlet journal check DIRECTORY [--repair]`. */
import { existsSync } from 'node:fs';
import { checkJournal, type Drop, type JournalReport, repairJournal } from '../adapters/shared/file_journal/mod.ts';
import { type CommandContext, flag } from './context.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';
import { paint } from './output.ts';
import { plain } from '../src/http/text_table.ts';

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
  let dropped: readonly Drop[] = [];
  if (flag<boolean>(context, 'repair') === true && reports.some((report) => report.wouldDrop !== undefined)) {
    if (!json) { for (const report of reports) terminal.out(describe(report, terminal.colours)); }
    dropped = await repair(directory);
    reports = await checkJournal(directory);
  }
  const damaged = reports.some((report) => report.damage !== undefined);
  if (json) terminal.out(JSON.stringify({ directory, damaged, dropped, logs: reports.map(plainReport) }));
  else {
    for (const drop of dropped) terminal.out(`given up: ${plain(dropText(drop))}`);
    for (const report of reports) terminal.out(describe(report, terminal.colours));
  }
  return damaged ? exitCodes.notAsExpected : exitCodes.done;
}

async function repair(directory: string): Promise<readonly Drop[]> {
  try {
    return await repairJournal(directory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(exitCodes.notAsExpected, 'not-repaired', `${directory} was not repaired: ${why}`);
  }
}

function dropText({ bytes, path, position, readableEvents }: Drop): string {
  const events = `with these readable events: ${readableEvents.join(', ') || 'none'}`;
  return `${bytes} bytes of ${path} from byte ${position}, ${events}`;
}

function plainReport({ damage, wouldDrop, ...report }: JournalReport): object {
  return { ...report, damage: damage?.message ?? null, wouldDrop: wouldDrop ?? null };
}

function describe(report: JournalReport, colours: boolean): string {
  const { log, segments, records, ids, cut, damage, wouldDrop } = report;
  if (damage !== undefined) {
    const repair = wouldDrop === undefined
      ? 'a repair can do nothing about it: restore a copy'
      : `--repair would give up ${dropText(wouldDrop)}`;
    return `${log}: ${paint('damaged', 'bad', colours)}: ${plain(damage.message)}\n  ${plain(repair)}`;
  }
  const lines = [`${log}: ${paint('good', 'good', colours)}: ${segments} segments, ${records} records, ${ids} ids`];
  for (const { path, position, bytes, detail } of cut) {
    lines.push(
      `  ${
        plain(path)
      }: ${bytes} bytes from byte ${position} were never acknowledged (${detail}); opening leaves them out`,
    );
  }
  return lines.join('\n');
}
