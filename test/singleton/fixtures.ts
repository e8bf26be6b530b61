/** Singletons that tests observe: one record of what ran where, shared by all nodes of a test. */
import { SingletonKey } from '../../src/singleton/key.ts';
import { WarmHandOverActor } from '../../src/singleton/warm_hand_over.ts';
import { Actor } from '../../src/actor/actor.ts';

export class Journal {
  live = 0;
  peak = 0;
  readonly lines: string[] = [];
  readonly got: unknown[] = [];
  start(at: string): void {
    this.live += 1;
    this.peak = Math.max(this.peak, this.live);
    this.lines.push(`start ${at}`);
  }
  stop(at: string): void {
    this.live -= 1;
    this.lines.push(`stop ${at}`);
  }
}

export type Command = number | 'where' | 'count' | 'fail' | 'stop-self' | { readonly reply: unknown };

/** Counts numbers; its count survives planned moves. */
export function counterClass(journal: Journal, options: { stopMs?: number; name?: string; role?: string } = {}) {
  return class Counter extends WarmHandOverActor<Command> {
    static readonly singleton: SingletonKey<Command> = SingletonKey.of<Command>(
      options.name ?? 'counter',
      options.role,
    );
    count = 0;
    override preStart(): void {
      journal.start(this.cluster.address);
    }
    override onReceive(message: Command): void {
      if (typeof message === 'number') {
        this.count += 1;
        journal.got.push(message);
      } else if (message === 'where') this.context.sender.tell(this.cluster.address);
      else if (message === 'count') this.context.sender.tell(this.count);
      else if (message === 'fail') throw new Error('asked to fail');
      else if (message === 'stop-self') this.context.stopSelf();
      else this.context.sender.tell(message.reply);
    }
    override async postStop(): Promise<void> {
      if (options.stopMs) {
        await new Promise<void>((resolve) => this.context.system.environment.timers.set(options.stopMs!, resolve));
      }
      journal.stop(this.cluster.address);
    }
    serializeForHandOver(): Uint8Array {
      return new TextEncoder().encode(String(this.count));
    }
    restoreFromHandOver(state: Uint8Array): void {
      this.count = Number(new TextDecoder().decode(state));
    }
  };
}

/** An actor without state to hand over. */
export class Plain extends Actor<Command> {
  static readonly singleton: SingletonKey<Command> = SingletonKey.of<Command>('plain');
  override onReceive(message: Command): void {
    if (message === 'where') this.context.sender.tell(this.cluster.address);
  }
}
