/** One sender's load: numbered messages at a steady rate, and what became of those that were not acknowledged. */
import type { ActorRef, DeadLetter } from '../../src/mod.ts';
import type { Ledger as Counters } from '../../src/facade/mod.ts';
import type { LedgerMessage } from './ledger.ts';

/** Numbers from `from` to `to` that ended as dead letters of one reason. */
export interface DeadRange {
  readonly from: number;
  to: number;
  readonly reason: string;
}

export interface SenderReport {
  readonly sender: number;
  /** Numbers told: 1 to this. */
  readonly numbered: number;
  readonly counters: Counters;
  readonly dead: readonly DeadRange[];
}

const everyMs = 2;
/** A sender that outruns the host waits; an overflowing buffer is not what is tested here. */
const pauseAbove = 100_000;

export class Load {
  readonly dead: DeadRange[] = [];
  numbered = 0;
  readonly #sender: number;
  readonly #ref: ActorRef<LedgerMessage>;
  readonly #buffered: () => number;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(sender: number, ref: ActorRef<LedgerMessage>, buffered: () => number) {
    this.#sender = sender;
    this.#ref = ref;
    this.#buffered = buffered;
  }

  /** `rate` messages a second from now on; 0 stops. */
  run(rate: number): void {
    clearInterval(this.#timer);
    if (rate === 0) return;
    let last = performance.now();
    let owed = 0;
    this.#timer = setInterval(() => {
      const now = performance.now();
      owed += (now - last) * rate / 1_000;
      last = now;
      if (this.#buffered() > pauseAbove) owed = 0;
      for (; owed >= 1; owed -= 1) this.#ref.tell({ sender: this.#sender, n: ++this.numbered });
    }, everyMs);
  }

  onDeadLetter({ message, reason }: DeadLetter): void {
    const { n, sender } = message as { n?: unknown; sender?: unknown };
    if (typeof n !== 'number' || sender !== this.#sender) return;
    const last = this.dead.at(-1);
    if (last?.reason === reason && last.to + 1 === n) last.to = n;
    else this.dead.push({ from: n, to: n, reason });
  }
}
