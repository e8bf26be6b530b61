/** What lives at the manager's path: it takes no messages, since a manager listens to its cluster and to nobody else. */
import { Actor } from '../actor/actor.ts';

export class ManagerActor extends Actor<unknown> {
  onReceive(message: unknown): void {
    this.log.warn('a singleton manager takes no messages: dropped', { type: typeof message });
  }
}
