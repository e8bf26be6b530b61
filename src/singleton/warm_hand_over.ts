/** State that travels with a planned move. */
import { Actor } from '../actor/actor.ts';

/** What an actor must offer to be handed over warm; half of it counts as none. */
export interface WarmHandOver {
  /**
   * Called once, after `postStop`, and only for a planned stop. `null` or no bytes: the next instance starts cold.
   */
  serializeForHandOver(): Uint8Array | null;
  /** Called on the next host after the constructor and before `preStart`. A throw means a cold start and a warning. */
  restoreFromHandOver(state: Uint8Array): void;
}

/** An actor whose state survives planned moves, not crashes. */
export abstract class WarmHandOverActor<T = unknown> extends Actor<T> implements WarmHandOver {
  abstract serializeForHandOver(): Uint8Array | null;
  abstract restoreFromHandOver(state: Uint8Array): void;
}

export function isWarm(actor: unknown): actor is WarmHandOver {
  const candidate = actor as Partial<WarmHandOver> | undefined;
  return typeof candidate?.serializeForHandOver === 'function' && typeof candidate.restoreFromHandOver === 'function';
}
