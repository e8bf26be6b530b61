/** A journal in PostgreSQL. Each call is one statement, in which the fence and the sequence number are checked too. */
import { FencedError } from '../../src/mod.ts';
import { limits } from '../../src/limits.ts';
import {
  checkAppend,
  checkFence,
  checkNumber,
  checkPersistenceId,
  checkRange,
  checkWriter,
  type Claim,
  decodePayload,
  encodePayloads,
  fencedBy,
  type HeldClaim,
  type Journal,
  JournalConcurrencyError,
  type NewEvent,
  payloadCodec,
  StorageError,
  type StoredEvent,
  type TaggedEvent,
  type Writer,
} from '../../src/persistence/mod.ts';
import type { Codec } from '../../src/wire/codec.ts';
import { base64 } from './base64.ts';
import { bytesOf, integer, type PostgresQuery, type Row } from './query.ts';
import { checkPrefix } from './schema.ts';

/** Options of `PostgresJournal`. All fields are optional. */
export interface PostgresJournalOptions {
  /** Before the names of the tables; default `singlet_`. */
  readonly prefix?: string;
  /** Which of the two logs; default `journal`. */
  readonly log?: 'journal' | 'state';
  readonly codec?: Codec;
  /** Events that are fetched at a time, if they are not more than `limits.journalPageBytes`; default 500. */
  readonly pageSize?: number;
}

/** A journal in PostgreSQL, for any number of nodes: claims and appends are conditional writes in one transaction. */
export class PostgresJournal implements Journal {
  readonly #query: PostgresQuery;
  readonly #heads: string;
  readonly #events: string;
  readonly #codec: Codec;
  readonly #pageSize: number;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  /** The client stays the caller's. @throws OptionsError */
  constructor(query: PostgresQuery, options: PostgresJournalOptions = {}) {
    const { prefix = 'singlet_', log = 'journal', codec = payloadCodec, pageSize = 500 } = options;
    checkPrefix(prefix);
    checkNumber('PostgresJournalOptions', 'pageSize', pageSize, 1);
    this.#query = query;
    this.#heads = `${prefix}${log}_heads`;
    this.#events = `${prefix}${log}_events`;
    this.#codec = codec;
    this.#pageSize = pageSize;
  }

  async claim(persistenceId: string, writer: Writer): Promise<Claim> {
    checkPersistenceId(persistenceId);
    checkWriter(writer);
    const { uid, clusterId } = writer;
    // The rule of `decideClaim`, decided where the row is locked.
    const [row] = await this.#run(
      `insert into ${this.#heads} as h (id, highest, deleted_to, epoch, asked, uid, cluster_id)
        values ($1, 0, 0, $2::bigint, $2::bigint, $3, $4)
      on conflict (id) do update set asked = excluded.asked, uid = excluded.uid, cluster_id = excluded.cluster_id,
        epoch = case when h.cluster_id <> excluded.cluster_id then greatest(excluded.asked, h.epoch + 1)
          else excluded.asked + (h.epoch - h.asked) end
        where h.cluster_id <> excluded.cluster_id or excluded.asked > h.asked
          or (excluded.asked = h.asked and excluded.uid = h.uid)
      returning epoch, highest, deleted_to`,
      [persistenceId, writer.epoch, uid, clusterId],
    );
    if (row === undefined) {
      const held = (await this.#head(persistenceId))?.claim;
      throw held === undefined
        ? new FencedError(`'${persistenceId}' was not claimed`)
        : fencedBy(persistenceId, writer, held);
    }
    return {
      writer: { epoch: integer(row['epoch']), uid, clusterId },
      highestSeq: integer(row['highest']),
      deletedTo: integer(row['deleted_to']),
    };
  }

  async append(
    persistenceId: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]> {
    checkAppend(persistenceId, events, expectedSeq, writer);
    if (events.length === 0) return [];
    const stored = events.map(({ payload, tags = [], version = 0 }, index): StoredEvent => ({
      persistenceId,
      sequenceNr: expectedSeq + 1 + index,
      payload,
      tags: [...new Set(tags)],
      version,
      epoch: writer.epoch,
      uid: writer.uid,
    }));
    const payloads = encodePayloads(this.#codec, events);
    const encoded = stored.map(({ sequenceNr, tags, version }, index) => ({
      s: sequenceNr,
      v: version,
      t: tags,
      p: base64(payloads[index] as Uint8Array),
    }));
    const [row] = await this.#run(
      `with head as (
        update ${this.#heads} set highest = $5::bigint + $6::bigint
          where id = $1 and epoch = $2::bigint and uid = $3 and cluster_id = $4 and highest = $5::bigint
          returning id),
      written as (
        insert into ${this.#events} (id, seq, payload, version, tags, epoch, uid)
          select head.id, e.s, decode(e.p, 'base64'), e.v, array(select jsonb_array_elements_text(e.t)), $2::bigint, $3
          from head, jsonb_to_recordset($7::text::jsonb) as e(s bigint, v bigint, t jsonb, p text)
          order by e.s
          returning 1)
      select count(*) as written from written`,
      [
        persistenceId,
        writer.epoch,
        writer.uid,
        writer.clusterId,
        expectedSeq,
        events.length,
        JSON.stringify(encoded),
      ],
    );
    if (integer(row?.['written']) !== events.length) throw await this.#refusal(persistenceId, expectedSeq, writer);
    return stored;
  }

  async *read(persistenceId: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    checkRange(fromSeq, toSeq);
    const last = Math.min(toSeq, await this.highestSeq(persistenceId));
    for (let from = fromSeq; from <= last;) {
      const rows = await this.#run(
        this.#page('id = $1 and seq between $2::bigint and $3::bigint', 'seq'),
        [persistenceId, from, last, this.#pageSize],
      );
      if (rows.length === 0) return;
      for (const row of rows) {
        const event = this.#stored(row);
        from = event.sequenceNr + 1;
        yield event;
      }
    }
  }

  /**
   * In the order of transactions, and only as far as no earlier one is still running, so that none is ever missed. A writer
   * anywhere in the database that leaves its transaction open therefore holds this up.
   */
  async *readByTag(tag: string, after?: string): AsyncGenerator<TaggedEvent, void, void> {
    let offset = after ?? '0.0';
    for (;;) {
      const [xid = '', ord = ''] = /^(\d+)\.(\d+)$/.exec(offset)?.slice(1) ?? [];
      if (xid === '') throw new StorageError(`${JSON.stringify(offset)} is no offset of this journal`);
      const rows = await this.#run(
        this.#page(
          `tags @> array[$1::text] and (xid, ord) > ($2::text::xid8, $3::text::bigint)
            and xid < pg_snapshot_xmin(pg_current_snapshot())`,
          'xid, ord',
        ),
        [tag, xid, ord, this.#pageSize],
      );
      for (const row of rows) {
        offset = `${String(row['xid_text'])}.${String(row['ord_text'])}`;
        yield { ...this.#stored(row), offset };
      }
      // Of a page that was cut for its bytes, the database has found more than it gave.
      if (rows.length < this.#pageSize && rows.length === integer(rows[0]?.['found'] ?? 0)) return;
    }
  }

  async highestSeq(persistenceId: string): Promise<number> {
    return (await this.#head(persistenceId))?.highest ?? 0;
  }

  async delete(persistenceId: string, toSeq: number): Promise<void> {
    checkPersistenceId(persistenceId);
    checkNumber('Journal', 'toSeq', toSeq);
    await this.#run(
      `with head as (
        update ${this.#heads} set deleted_to = greatest(deleted_to, least($2::bigint, highest)) where id = $1
          returning id, deleted_to)
      delete from ${this.#events} e using head where e.id = head.id and e.seq <= head.deleted_to`,
      [persistenceId, toSeq],
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#running);
  }

  async #refusal(id: string, expectedSeq: number, writer: Writer): Promise<Error> {
    const head = await this.#head(id);
    try {
      checkFence(id, head?.claim, writer);
    } catch (error) {
      return error as Error;
    }
    return new JournalConcurrencyError(id, expectedSeq, head?.highest ?? 0);
  }

  async #head(id: string): Promise<{ readonly highest: number; readonly claim: HeldClaim } | undefined> {
    const [row] = await this.#run(`select * from ${this.#heads} where id = $1`, [id]);
    if (row === undefined) return undefined;
    const claim = {
      epoch: integer(row['epoch']),
      asked: integer(row['asked']),
      uid: String(row['uid']),
      clusterId: String(row['cluster_id']),
    };
    return { highest: integer(row['highest']), claim };
  }

  /** The next rows in order: no more than `$4`, and, but for the first, no more than a page may have of bytes. */
  #page(where: string, order: string): string {
    return `select * from (
      select next.*, to_jsonb(tags) as tag_list, xid::text as xid_text, ord::text as ord_text, count(*) over () as found,
        sum(octet_length(payload)) over (order by ${order}) - octet_length(payload) as before
      from (select * from ${this.#events} where ${where} order by ${order} limit $4::int) as next) as page
      where before < ${limits.journalPageBytes} order by ${order}`;
  }

  #stored(row: Row): StoredEvent {
    const [persistenceId, sequenceNr] = [String(row['id']), integer(row['seq'])];
    return {
      persistenceId,
      sequenceNr,
      payload: decodePayload(this.#codec, bytesOf(row['payload']), persistenceId, sequenceNr),
      tags: row['tag_list'] as readonly string[],
      version: integer(row['version']),
      epoch: integer(row['epoch']),
      uid: String(row['uid']),
    };
  }

  #run(text: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
    if (this.#closed) return Promise.reject(new StorageError('the journal is closed'));
    const running = this.#query.query(text, parameters);
    this.#running.add(running);
    const forget = () => void this.#running.delete(running);
    running.then(forget, forget);
    return running;
  }
}
