/** The Prometheus text format, version 0.0.4. Pure. */
import type { MetricSample } from './inspection.ts';

export const expositionType = 'text/plain; version=0.0.4; charset=utf-8';

/** Samples of one name stand together under one HELP and TYPE; a sample whose names are not valid is left out. */
export function exposition(samples: Iterable<MetricSample>): string {
  const families = new Map<string, MetricSample[]>();
  for (const sample of samples) {
    if (!isValid(sample)) continue;
    const family = families.get(sample.name);
    if (family === undefined) families.set(sample.name, [sample]);
    else family.push(sample);
  }
  let text = '';
  for (const [name, family] of families) {
    const first = family[0];
    if (first === undefined) continue;
    text += `# HELP ${name} ${escapeHelp(first.help)}\n# TYPE ${name} ${first.type}\n`;
    for (const sample of family) text += `${name}${labelsText(sample.labels)} ${numberText(sample.value)}\n`;
  }
  return text;
}

function isValid(sample: MetricSample): boolean {
  return /^[a-zA-Z_:][\w:]*$/.test(sample.name) &&
    Object.keys(sample.labels ?? {}).every((label) => /^[a-zA-Z_]\w*$/.test(label));
}

function labelsText(labels: MetricSample['labels']): string {
  const entries = Object.entries(labels ?? {});
  if (entries.length === 0) return '';
  return `{${entries.map(([label, value]) => `${label}="${escapeLabel(value)}"`).join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}
