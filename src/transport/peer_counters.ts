/** What happened on the links of one node, for the metrics. */
import type { Lane } from '../wire/frames.ts';

export interface LaneCounters {
  frames: number;
  bytes: number;
  messages: number;
}

function laneCounters(): LaneCounters {
  return { frames: 0, bytes: 0, messages: 0 };
}

export class PeerCounters {
  readonly out: Readonly<Record<Lane, LaneCounters>> = { system: laneCounters(), user: laneCounters() };
  readonly in: Readonly<Record<Lane, LaneCounters>> = { system: laneCounters(), user: laneCounters() };
  /** Messages that were not sent, by reason. */
  readonly dropped = new Map<string, number>();
  dials = 0;
  dialFailures = 0;
  connects = 0;
  disconnects = 0;
  /** Surplus links of crossing dials that were closed. */
  duplicates = 0;
  /** Frames that were no frames of ours; each cost its link. */
  malformed = 0;
  /** Messages whose content could not become a value here. */
  undecodable = 0;
  /** Messages whose handler threw. */
  handlerErrors = 0;

  sent(lane: Lane, bytes: number, messages: number): void {
    count(this.out[lane], bytes, messages);
  }

  received(lane: Lane, bytes: number, messages: number): void {
    count(this.in[lane], bytes, messages);
  }

  drop(reason: string, messages = 1): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + messages);
  }
}

function count(counters: LaneCounters, bytes: number, messages: number): void {
  counters.frames++;
  counters.bytes += bytes;
  counters.messages += messages;
}
