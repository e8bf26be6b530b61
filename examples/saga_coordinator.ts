/**
 * A saga: book a flight, then a hotel; when the hotel is full, cancel the flight. Every step is an event in a journal before it
 * is taken, so when the host is gone in the middle, the next one goes on where the journal ends. Three nodes in one process, for
 * the sake of the example:
 *
 *     bun run examples/saga_coordinator.ts
 *     deno run --allow-net --allow-read --allow-write examples/saga_coordinator.ts
 *     node examples/saga_coordinator.ts
 */
import { mkdirSync, rmSync } from 'node:fs';
import { ActorSystem } from 'singlet';
import { Cluster, SingletonKey } from 'singlet/cluster';
import { openFileStores } from 'singlet/file-journal';
import { PersistentActor, usePersistence } from 'singlet/persistence';

type Step = 'begun' | 'flight-booked' | 'hotel-booked' | 'hotel-full' | 'flight-cancelled';
type TripEvent = { readonly trip: string; readonly step: Step };
type Trips = Readonly<Record<string, Step>>;
type TripCommand = { readonly kind: 'book'; readonly trip: string } | { readonly kind: 'go-on'; readonly trip: string };

/** The world outside. Asking twice for the same trip changes nothing: what a saga needs of its services. */
const flights = new Map<string, 'booked' | 'cancelled'>();
const hotels = new Set<string>();
const calls: string[] = [];

class TripCoordinator extends PersistentActor<TripCommand, TripEvent, Trips> {
  static readonly singleton = SingletonKey.of<TripCommand>('trips');
  readonly persistenceId = 'trips';

  initialState(): Trips {
    return {};
  }

  onEvent(trips: Trips, { trip, step }: TripEvent): Trips {
    return { ...trips, [trip]: step };
  }

  /** After a crash: whatever the journal shows as unfinished goes on. */
  override onRecoveryCompleted(trips: Trips): void {
    for (const [trip, step] of Object.entries(trips)) {
      if (step !== 'hotel-booked' && step !== 'flight-cancelled') this.context.self.tell({ kind: 'go-on', trip });
    }
  }

  async onCommand(trips: Trips, { kind, trip }: TripCommand): Promise<void> {
    if (kind === 'book' && trip in trips) return;
    await this.persistStep(trip, kind === 'book' ? 'begun' : await this.#takeNext(trip, trips[trip]));
  }

  /** The step that follows; taking it may be repeated after a crash, so the services are asked with the name of the trip. */
  async #takeNext(trip: string, step: Step | undefined): Promise<Step | undefined> {
    await new Promise((resolve) => setTimeout(resolve, 20));
    calls.push(`${trip} ${step} on ${this.cluster.address}`);
    switch (step) {
      case 'begun':
        flights.set(trip, 'booked');
        return 'flight-booked';
      case 'flight-booked':
        if (trip === 'to-a-full-hotel') return 'hotel-full';
        hotels.add(trip);
        return 'hotel-booked';
      case 'hotel-full':
        flights.set(trip, 'cancelled');
        return 'flight-cancelled';
      default:
        return undefined;
    }
  }

  async persistStep(trip: string, step: Step | undefined): Promise<void> {
    if (step === undefined) return;
    await this.persist({ trip, step }, () => this.context.self.tell({ kind: 'go-on', trip }));
  }
}

const directory = `.tmp/saga-${crypto.randomUUID()}`;
mkdirSync(directory, { recursive: true });
const stores = await openFileStores(directory);
const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('example', { logLevel: 'off' });
  usePersistence(system, stores); // one directory for the nodes of a machine; PostgreSQL for those of several
  const seeds = clusters.slice(0, 1).map((first) => first.address);
  clusters.push(await Cluster.join(system, { seeds, rejoin: false }));
}
const trips = clusters.map((cluster) => cluster.singleton.start(TripCoordinator));

const until = async (check: () => boolean): Promise<void> => {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 5));
};
trips[1]!.tell({ kind: 'book', trip: 'to-the-sea' });
trips[2]!.tell({ kind: 'book', trip: 'to-a-full-hotel' });
await until(() => flights.get('to-a-full-hotel') === 'booked');
// The host is put out in the middle of it, as after a crash: nothing is handed over.
clusters[1]!.down(clusters[0]!.address);
await until(() => hotels.has('to-the-sea') && flights.get('to-a-full-hotel') === 'cancelled');
console.log('to-the-sea:', flights.get('to-the-sea'), 'to-a-full-hotel:', flights.get('to-a-full-hotel'));
console.log('hosts:', new Set(calls.map((call) => call.split(' on ')[1])).size);

for (const cluster of clusters) await cluster.system.terminate();
await stores.close();
rmSync(directory, { recursive: true, force: true });
