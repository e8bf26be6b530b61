/** `/cluster/events`: server-sent events with bounded readers, resumption and a heartbeat. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type { Problem } from './answers.ts';
import { EventLog, type NumberedEvent } from './event_log.ts';
import type { InspectionEvent } from './inspection.ts';

export interface FeedRequest {
  readonly lastEventId: string | undefined;
  /** How many past events a reader without an id gets. */
  readonly replay: number;
  readonly signal: AbortSignal;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

const encoder = new TextEncoder();

const tooMany: Problem = {
  status: 503,
  code: 'too-many-readers',
  message: `${limits.httpEventClients} readers follow the events of this node already.`,
  hint: 'Read from another node, or poll /cluster/members and /cluster/singletons.',
  headers: { 'retry-after': '5' },
};

export function encodeEvent({ id, event }: NumberedEvent): string {
  return `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
}

const resetNotice = `data: ${
  JSON.stringify({ kind: 'reset', text: 'Events were missed: read /cluster/members and /cluster/singletons again.' })
}\n\n`;

export class EventFeed {
  readonly #log: EventLog;
  readonly #environment: Pick<Environment, 'timers'>;
  readonly #readers = new Set<Controller>();
  #cancelHeartbeat: Cancel | undefined;
  #cutOff = 0;
  #refused = 0;

  constructor(environment: Pick<Environment, 'timers'>, uid: string) {
    this.#environment = environment;
    this.#log = new EventLog(uid, limits.httpEventsKept);
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Readers that were too slow. */
  get cutOff(): number {
    return this.#cutOff;
  }

  get refused(): number {
    return this.#refused;
  }

  publish(event: InspectionEvent): void {
    this.#send(encodeEvent(this.#log.append(event)));
    // This node is gone: an open stream would only keep its listener from closing.
    if (event.kind === 'self-removed') { for (const reader of [...this.#readers]) this.#end(reader); }
  }

  /** The newest `count`, oldest first, each with the id from which a reader can go on. */
  latest(count: number): readonly (InspectionEvent & { readonly id: string })[] {
    return this.#log.latest(count).map(({ id, event }) => ({ id, ...event }));
  }

  open(request: FeedRequest): Response | Problem {
    if (this.#readers.size >= limits.httpEventClients) {
      this.#refused += 1;
      return tooMany;
    }
    let reader: Controller | undefined;
    const leave = () => reader !== undefined && this.#forget(reader);
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        reader = controller;
        this.#readers.add(controller);
        controller.enqueue(encoder.encode(this.#greeting(request)));
      },
      cancel: () => {
        leave();
      },
    }, new ByteLengthQueuingStrategy({ highWaterMark: limits.httpEventClientBytes }));
    request.signal.addEventListener('abort', leave, { once: true });
    this.#armHeartbeat();
    const headers = {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    };
    return new Response(stream, { headers });
  }

  #greeting({ lastEventId, replay }: FeedRequest): string {
    if (lastEventId === undefined) return `retry: 1000\n\n${this.#log.latest(replay).map(encodeEvent).join('')}`;
    const { events, gap } = this.#log.resume(lastEventId);
    return `retry: 1000\n\n${gap ? resetNotice : ''}${events.map(encodeEvent).join('')}`;
  }

  #send(text: string): void {
    const bytes = encoder.encode(text);
    for (const reader of [...this.#readers]) {
      if ((reader.desiredSize ?? 0) > 0) reader.enqueue(bytes);
      else {
        this.#cutOff += 1;
        this.#end(reader);
      }
    }
  }

  #end(reader: Controller): void {
    this.#forget(reader);
    try {
      reader.close();
    } catch {
      // The reader has cancelled it meanwhile.
    }
  }

  #forget(reader: Controller): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    this.#cancelHeartbeat?.();
    this.#cancelHeartbeat = undefined;
  }

  #armHeartbeat(): void {
    this.#cancelHeartbeat ??= this.#environment.timers.set(limits.httpEventHeartbeatMs, () => {
      this.#cancelHeartbeat = undefined;
      if (this.#readers.size === 0) return;
      this.#send(': still here\n\n');
      this.#armHeartbeat();
    });
  }
}
