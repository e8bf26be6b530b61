/** Files of configuration: secrets, tokens, certificates. */
import { limits } from '../../src/limits.ts';
import { readBounded } from '../../src/wire/bounded_body.ts';

/** @throws Error when there is more than `limits.textFileBytes`, as there is without an end in `/dev/zero` */
export async function textFile(path: string, content: ReadableStream<Uint8Array>): Promise<string> {
  const bytes = await readBounded(content, limits.textFileBytes);
  if (bytes === undefined) throw new Error(`cannot read ${path}: it has more than ${limits.textFileBytes} bytes`);
  return new TextDecoder().decode(bytes);
}
