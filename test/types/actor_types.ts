/** What must compile, and what must not, of actors and refs. Compiled by `tsc` only. */
import { Actor, type ActorRef, ActorSystem } from 'singlet';

class Greeter extends Actor<string> {
  override onReceive(message: string): void {
    this.context.self.tell(message);
    // @ts-expect-error: it takes strings
    this.context.self.tell(1);
  }
}

class Waiter extends Actor<string> {
  override async onReceive(_message: string): Promise<void> {}
}

// @ts-expect-error: an actor must handle messages
export class Idle extends Actor<string> {}

/** Never called. */
export function spawns(): void {
  const system = ActorSystem.create('types');
  const greeter: ActorRef<string> = system.spawn(Greeter, 'greeter');
  greeter.tell('hello');
  // @ts-expect-error: it takes strings
  greeter.tell(1);
  const waiter: ActorRef<string> = system.spawnAnonymous(() => new Waiter());
  // @ts-expect-error: a ref of another message type
  const wrong: ActorRef<number> = waiter;
  void wrong;
  // @ts-expect-error: not an actor
  system.spawn(class {}, 'nothing');
  // @ts-expect-error: a name is needed
  system.spawn(Greeter);
}

/** A ref that takes more can stand in for one that takes less, and not the other way round. */
export function narrow(wide: ActorRef<string | number>, slim: ActorRef<string>): void {
  const fine: ActorRef<string> = wide;
  // @ts-expect-error: it does not take numbers
  const wrong: ActorRef<string | number> = slim;
  void [fine, wrong];
}
