/** What fragments in the documentation may take for granted: an actor system in a cluster, and a singleton. */
import type { Actor, ActorRef, ActorSystem } from 'singlet';
import type { Cluster, SingletonKey } from 'singlet/cluster';

declare global {
  const system: ActorSystem;
  const cluster: Cluster;
  const scheduler: ActorRef<JobCommand>;
  const host: string;
  const seeds: string[];
  const secret: string;

  interface JobCommand {
    readonly kind: 'schedule';
    readonly jobId: string;
  }

  class RateBudget extends Actor<'take'> {
    static readonly kind: string;
    constructor(props: { perSecond: number });
    override onReceive(message: 'take'): void;
  }

  class JobScheduler extends Actor<JobCommand> {
    static readonly singleton: SingletonKey<JobCommand>;
    override onReceive(message: JobCommand): void;
  }
}
