/** By which gateway each caller was heard of last, and when. Bounded: those not heard of for longest go first. */
import type { GatewayPlace } from './caller_ref.ts';
import type { CallerStamp } from './messages.ts';

export interface Route {
  readonly session: number;
  readonly place: GatewayPlace | undefined;
  readonly heardAt: number;
}

export class CallerRoutes {
  readonly #max: number;
  /** In the order of hearing. */
  readonly #routes = new Map<string, Route>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#routes.size;
  }

  find(caller: string): Route | undefined {
    return this.#routes.get(caller);
  }

  /** False: a message that a later connection of this caller has overtaken; it must not be looked at. */
  heard({ id, session }: CallerStamp, place: GatewayPlace, now: number): boolean {
    const known = this.#routes.get(id);
    if (known !== undefined && known.session > session) return false;
    this.#put(id, { session, place, heardAt: now });
    return true;
  }

  /** A caller known from elsewhere, such as the hand-over of a singleton. */
  remember(caller: string, now: number): Route {
    const route = this.#routes.get(caller) ?? { session: 0, place: undefined, heardAt: now };
    if (!this.#routes.has(caller)) this.#put(caller, route);
    return route;
  }

  /** Forgets those not heard of since `before`. */
  expire(before: number): void {
    for (const [caller, { heardAt }] of this.#routes) {
      if (heardAt >= before) return;
      this.#routes.delete(caller);
    }
  }

  forget(caller: string): void {
    this.#routes.delete(caller);
  }

  #put(caller: string, route: Route): void {
    this.#routes.delete(caller);
    this.#routes.set(caller, route);
    for (const [oldest] of this.#routes) {
      if (this.#routes.size <= this.#max) return;
      this.#routes.delete(oldest);
    }
  }
}
