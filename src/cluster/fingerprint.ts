/** Reading two fingerprints, the texts `key=value; …` that nodes compare before one lets the other join. */

/** In words, what two fingerprints disagree about: `gateWindowMs: 1500 here, 1000 there`. */
export function fingerprintDifferences(here: string, there: string): readonly string[] {
  const mine = fieldsOf(here);
  const theirs = fieldsOf(there);
  const differences: string[] = [];
  for (const key of new Set([...mine.keys(), ...theirs.keys()])) {
    const [a = 'unset', b = 'unset'] = [mine.get(key), theirs.get(key)];
    if (a !== b) differences.push(`${key}: ${a} here, ${b} there`);
  }
  return differences;
}

/** For logs and for the peer: short and on one line, whatever a stranger sends as its fingerprint. */
export function differencesText(here: string, there: unknown): string {
  if (typeof there !== 'string' || there.length > 1_024) return 'the peer sent no fingerprint that can be read';
  const text = fingerprintDifferences(here, there).join('; ').replace(/\p{Cc}/gu, ' ');
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

function fieldsOf(text: string): Map<string, string> {
  const pairs = text.split('; ').map((pair): [string, string] => {
    const at = pair.indexOf('=');
    return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
  });
  return new Map(pairs);
}
