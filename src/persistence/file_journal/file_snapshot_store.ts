/** Snapshots in files: one directory per id, one file per snapshot, each written beside its place and renamed. */
import { limits } from '../../limits.ts';
import {
  checkNumber,
  checkPersistenceId,
  type Snapshot,
  type SnapshotDamage,
  type SnapshotStore,
  type SnapshotStoreOptions,
  StorageError,
} from '../mod.ts';
import { Codec } from '../../wire/codec.ts';
import { crc32 } from '../../wire/crc32.ts';
import { ByteReader, ByteWriter } from './bytes.ts';
import { type FileSystem, readListed, replaceFile } from './file_system.ts';

/** Options of `FileSnapshotStore.open`. */
export interface FileSnapshotStoreOptions extends SnapshotStoreOptions {
  readonly system: FileSystem;
  readonly directory: string;
  readonly codec?: Codec;
  /** As for the journal. */
  readonly checkOwner?: () => Promise<void>;
  readonly onWarning?: (message: string) => void;
}

const magic = new TextEncoder().encode('SGLTSNAP');
const snapshotFormat = 1;
const stateCodec = new Codec({ maxBytes: limits.snapshotBytes });
const namePattern = /^(\d{16})\.snap$/;

/** Snapshots as files, each written beside the old one and put in its place by a rename. */
export class FileSnapshotStore implements SnapshotStore {
  readonly #options: FileSnapshotStoreOptions;
  readonly #codec: Codec;
  readonly #keepN: number;
  /** The last operation of each id: they run one after the other. */
  readonly #chains = new Map<string, Promise<unknown>>();
  /** Directories whose names are known to be durable. */
  readonly #settled = new Set<string>();
  #closed = false;

  private constructor(options: FileSnapshotStoreOptions) {
    this.#options = options;
    this.#codec = options.codec ?? stateCodec;
    this.#keepN = options.keepN ?? 3;
    checkNumber('SnapshotStoreOptions', 'keepN', this.#keepN);
  }

  /** @throws StorageError */
  static async open(options: FileSnapshotStoreOptions): Promise<FileSnapshotStore> {
    const store = new FileSnapshotStore(options);
    await options.system.makeDirectory(options.directory);
    return store;
  }

  async save(persistenceId: string, { sequenceNr, state, version }: Snapshot): Promise<void> {
    this.#checkOpen();
    checkPersistenceId(persistenceId);
    checkNumber('Snapshot', 'sequenceNr', sequenceNr);
    checkNumber('Snapshot', 'version', version);
    const bytes = encodeFile(persistenceId, sequenceNr, version, this.#codec.encode(state));
    await this.#inTurn(persistenceId, async () => {
      const { system, directory, checkOwner } = this.#options;
      const own = await this.#directoryOf(persistenceId);
      await checkOwner?.();
      await system.makeDirectory(own);
      await system.syncDirectory(directory);
      await replaceFile(system, own, fileName(sequenceNr), bytes);
      await this.#retain(own);
    });
  }

  loadLatest(persistenceId: string, onDamage?: (damage: SnapshotDamage) => void): Promise<Snapshot | undefined> {
    return this.loadBefore(persistenceId, Infinity, onDamage);
  }

  async loadBefore(
    persistenceId: string,
    sequenceNr: number,
    onDamage?: (damage: SnapshotDamage) => void,
  ): Promise<Snapshot | undefined> {
    this.#checkOpen();
    return await this.#inTurn(persistenceId, async () => {
      const own = await this.#directoryOf(persistenceId);
      const numbers = (await this.#list(own)).filter((number) => number < sequenceNr).reverse();
      for (const number of numbers) {
        const bytes = await readListed(this.#options.system, own, fileName(number));
        if (bytes === undefined) continue;
        await this.#settle(own);
        try {
          const { version, stateBytes } = decodeFile(persistenceId, number, bytes);
          return { sequenceNr: number, version, state: this.#codec.decode(stateBytes) };
        } catch (error) {
          onDamage?.({ sequenceNr: number, detail: `${own}/${fileName(number)}: ${(error as Error).message}` });
        }
      }
      return undefined;
    });
  }

  async list(persistenceId: string): Promise<readonly number[]> {
    this.#checkOpen();
    return await this.#inTurn(persistenceId, async () => this.#list(await this.#directoryOf(persistenceId)));
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    this.#checkOpen();
    checkNumber('SnapshotStore', 'toSeq', toSeq);
    await this.#inTurn(persistenceId, async () => {
      const own = await this.#directoryOf(persistenceId);
      const gone = (await this.#list(own)).filter((number) => number <= toSeq);
      for (const number of gone) await this.#options.system.remove(`${own}/${fileName(number)}`);
      if (gone.length > 0) await this.#options.system.syncDirectory(own);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#chains.values());
  }

  async #retain(own: string): Promise<void> {
    const { system, onWarning } = this.#options;
    try {
      const names = await system.list(own);
      for (const name of names) if (name.endsWith('.tmp')) await system.remove(`${own}/${name}`);
      if (this.#keepN === 0) return;
      for (const number of (await this.#list(own)).slice(0, -this.#keepN)) {
        await system.remove(`${own}/${fileName(number)}`);
      }
    } catch (error) {
      onWarning?.(`old snapshots in ${own} could not be removed: ${String(error)}`);
    }
  }

  /** What somebody before has renamed and perhaps not synced is durable from now on: events may go because of it. */
  async #settle(own: string): Promise<void> {
    if (this.#settled.has(own)) return;
    await this.#options.system.syncDirectory(own);
    this.#settled.add(own);
  }

  /** Ascending. */
  async #list(own: string): Promise<readonly number[]> {
    let names: readonly string[];
    try {
      names = await this.#options.system.list(own);
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error;
      // No snapshots yet, unless the whole store is away or has just come back: to take that for none would lose the state.
      const { system, directory } = this.#options;
      if ((await system.list(directory)).includes(own.slice(directory.length + 1))) throw error;
      return [];
    }
    return names.flatMap((name) => {
      const digits = namePattern.exec(name)?.[1];
      return digits === undefined ? [] : [Number(digits)];
    }).sort((a, b) => a - b);
  }

  async #directoryOf(persistenceId: string): Promise<string> {
    return `${this.#options.directory}/${await directoryName(persistenceId)}`;
  }

  #inTurn<T>(persistenceId: string, run: () => Promise<T>): Promise<T> {
    const before = this.#chains.get(persistenceId) ?? Promise.resolve();
    const result = before.then(run, run);
    const settled = result.then(() => {}, () => {}).then(() => {
      if (this.#chains.get(persistenceId) === settled) this.#chains.delete(persistenceId);
    });
    this.#chains.set(persistenceId, settled);
    return result;
  }

  #checkOpen(): void {
    if (this.#closed) throw new StorageError('the snapshot store is closed');
  }
}

function fileName(sequenceNr: number): string {
  return `${String(sequenceNr).padStart(16, '0')}.snap`;
}

/** Safe on every file system: no case to be lost, no reserved name, no length over the limit. */
async function directoryName(persistenceId: string): Promise<string> {
  if (/^[a-z0-9][a-z0-9_-]{0,99}$/.test(persistenceId)) return `id-${persistenceId}`;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(persistenceId));
  return `sha-${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function encodeFile(id: string, sequenceNr: number, version: number, state: Uint8Array): Uint8Array<ArrayBuffer> {
  const body = new ByteWriter(state.length + 300).text(id).int(sequenceNr).int(version).u32(state.length).raw(state)
    .done();
  return new ByteWriter(body.length + 20).raw(magic).u32(snapshotFormat).u32(body.length).u32(crc32(body)).raw(body)
    .done();
}

/** Throws when it is not this snapshot, whole. */
function decodeFile(
  id: string,
  sequenceNr: number,
  bytes: Uint8Array,
): { readonly version: number; readonly stateBytes: Uint8Array } {
  const input = new ByteReader(bytes);
  if (!input.raw(magic.length).every((byte, index) => byte === magic[index])) {
    throw new RangeError('this is no snapshot');
  }
  const format = input.u32();
  if (format !== snapshotFormat) {
    throw new RangeError(`it has format version ${format}; this program reads ${snapshotFormat}`);
  }
  const length = input.u32();
  const crc = input.u32();
  if (length !== input.left) throw new RangeError(`${input.left} bytes in place of ${length}`);
  const body = input.raw(length);
  if (crc32(body) !== crc) throw new RangeError('its checksum is wrong');
  const inner = new ByteReader(body);
  if (inner.text() !== id || inner.int() !== sequenceNr) throw new RangeError('it is the snapshot of something else');
  const version = inner.int();
  return { version, stateBytes: inner.raw(inner.u32()) };
}
