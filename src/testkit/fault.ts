/** Faults as data: drawn from a seed, applied to a world, taken away one by one to find the shortest failing list. */
import { Prng } from './prng.ts';
import type { SimHost } from './sim_host.ts';
import type { HealMode } from './sim_network.ts';
import type { World } from './sim_world.ts';

/** Times are virtual milliseconds from the start of the run; nodes are host names. */
export type Fault =
  /** Packets between two groups vanish. `skewMs`: the single paths fail up to this much apart. */
  | {
    readonly kind: 'cut';
    readonly at: number;
    readonly until: number;
    readonly from: readonly string[];
    readonly to: readonly string[];
    readonly oneWay: boolean;
    readonly skewMs: number;
    readonly heal: HealMode;
  }
  /** SIGSTOP … SIGCONT, or a stalled event loop when it is short. */
  | {
    readonly kind: 'pause';
    readonly at: number;
    readonly until: number;
    readonly node: string;
    readonly order: 'due' | 'timers-first' | 'io-first';
  }
  /** The process is killed, or its machine loses power; started again after a while unless undefined. */
  | {
    readonly kind: 'crash';
    readonly at: number;
    readonly node: string;
    readonly power: boolean;
    readonly restartAfterMs: number | undefined;
  }
  /** A graceful leave; the process ends when it is done, and is started again after a while unless undefined. */
  | { readonly kind: 'leave'; readonly at: number; readonly node: string; readonly restartAfterMs: number | undefined }
  /** A host that has not run so far is started. */
  | { readonly kind: 'start'; readonly at: number; readonly node: string }
  /** The connections between two nodes are reset, or swallow everything from now on. */
  | { readonly kind: 'reset' | 'hang'; readonly at: number; readonly a: string; readonly b: string }
  /** Both ways between two nodes become slower by a factor. */
  | {
    readonly kind: 'slow';
    readonly at: number;
    readonly until: number;
    readonly a: string;
    readonly b: string;
    readonly factor: number;
  }
  /** Connections of a running process are reset, and new ones to it are refused for a while. */
  | { readonly kind: 'refuse'; readonly at: number; readonly until: number; readonly node: string }
  /** The machine sleeps: nothing runs, and its monotonic clock stands still while wall time goes on. */
  | { readonly kind: 'sleep'; readonly at: number; readonly until: number; readonly node: string }
  /** The wall clock of a host jumps. */
  | { readonly kind: 'clock'; readonly at: number; readonly node: string; readonly jumpMs: number }
  /** The listening socket of a running process dies. */
  | { readonly kind: 'listener'; readonly at: number; readonly node: string }
  /** Something that only the program under test knows how to do: `move`, `stop`, `start-again`, a lease fault. */
  | {
    readonly kind: 'call';
    readonly at: number;
    readonly node: string;
    readonly action: string;
    readonly argument: string;
  };

/** What the world cannot do by itself: graceful leaves and the program's own actions. */
export interface FaultHooks {
  leave(host: SimHost, restartAfterMs: number | undefined): void;
  call(host: SimHost, action: string, argument: string): void;
}

/** Puts a fault into the world's future. */
export function scheduleFault(world: World, fault: Fault, hooks: FaultHooks): void {
  world.at(fault.at, () => {
    world.record('fault', '-', describeFault(fault));
    apply(world, fault, hooks);
  });
}

function apply(world: World, fault: Fault, hooks: FaultHooks): void {
  switch (fault.kind) {
    case 'cut':
      return world.partition(fault.from, fault.to, {
        oneWay: fault.oneWay,
        skewMs: fault.skewMs,
        forMs: fault.until - fault.at,
        heal: fault.heal,
      });
    case 'pause':
      return world.pause(fault.node, { forMs: fault.until - fault.at, order: fault.order });
    case 'crash':
      return world.crash(fault.node, { power: fault.power, restartAfterMs: fault.restartAfterMs });
    case 'leave':
      return hooks.leave(world.host(fault.node), fault.restartAfterMs);
    case 'start':
      return void world.start(world.host(fault.node));
    case 'reset':
    case 'hang':
      for (const end of world.network.connectionsBetween(world.host(fault.a), world.host(fault.b))) {
        if (fault.kind === 'reset') world.network.resetConnection(end);
        else end.connection.hung = true;
      }
      return;
    case 'slow':
      return world.slow(fault.a, fault.b, fault.factor, fault.until - fault.at);
    case 'refuse':
      return world.network.refuse(world.host(fault.node), fault.until - fault.at);
    case 'sleep':
      return world.pause(fault.node, { forMs: fault.until - fault.at, clockStops: true });
    case 'clock':
      world.host(fault.node).wallOffsetMs += fault.jumpMs;
      return;
    case 'listener':
      return void world.network.loseListener(world.host(fault.node));
    case 'call':
      return hooks.call(world.host(fault.node), fault.action, fault.argument);
    default:
      return fault satisfies never;
  }
}

/** One line for people. */
export function describeFault(fault: Fault): string {
  const time = 'until' in fault ? `${seconds(fault.at)}–${seconds(fault.until)}` : seconds(fault.at);
  switch (fault.kind) {
    case 'cut': {
      const arrow = fault.oneWay ? '→' : '↔';
      const skew = fault.skewMs > 0 ? ` over ${Math.round(fault.skewMs)} ms` : '';
      return `${time} cut ${fault.from.join(',')} ${arrow} ${fault.to.join(',')}${skew}, heals by ${fault.heal}`;
    }
    case 'pause':
      return `${time} pause ${fault.node} (${fault.order})`;
    case 'crash':
      return `${time} ${fault.power ? 'power failure' : 'crash'} of ${fault.node}${again(fault.restartAfterMs)}`;
    case 'leave':
      return `${time} ${fault.node} leaves${again(fault.restartAfterMs)}`;
    case 'start':
    case 'listener':
      return `${time} ${fault.kind === 'start' ? 'start' : 'listener lost'} ${fault.node}`;
    case 'reset':
    case 'hang':
      return `${time} ${fault.kind} links ${fault.a}–${fault.b}`;
    case 'slow':
      return `${time} ${fault.a}–${fault.b} slower by ${fault.factor}`;
    case 'refuse':
      return `${time} ${fault.node} refuses connections`;
    case 'sleep':
      return `${time} the machine of ${fault.node} sleeps`;
    case 'clock':
      return `${time} wall clock of ${fault.node} jumps by ${Math.round(fault.jumpMs / 1000)} s`;
    case 'call':
      return `${time} ${fault.node}: ${fault.action} ${fault.argument}`;
    default:
      return fault satisfies never;
  }
}

function again(restartAfterMs: number | undefined): string {
  return restartAfterMs === undefined ? '' : `, again after ${Math.round(restartAfterMs)} ms`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)}s`;
}

/** How much later than the first this path fails or heals; depends on nothing but the seed, the pair and the time. */
export function pathSkew(seed: string, from: string, to: string, at: number, skewMs: number): number {
  return skewMs === 0 ? 0 : new Prng(`${seed}/skew/${from}/${to}/${at}`).between(0, skewMs);
}
