/** The one-way path between two hosts: its delays, and whether packets get through. */
import type { Prng } from './prng.ts';

/** Delay distribution of a network; each one-way path draws its own base from it. Milliseconds. */
export interface DelayProfile {
  readonly baseMs: readonly [low: number, high: number];
  /** Added per frame: `jitterMs` times the cube of a uniform number, so that large delays are rare. */
  readonly jitterMs: number;
  /** Probability of a lost packet, which an ordered link shows as one more retransmission time-out. */
  readonly lossRate: number;
  readonly retransmitMs: number;
}

/** How fast and how lossy simulated paths are, by name. Milliseconds; the rate is a fraction of packets. */
export const delayProfiles = {
  loopback: { baseMs: [0.03, 0.15], jitterMs: 0.4, lossRate: 0, retransmitMs: 200 },
  lan: { baseMs: [0.1, 1], jitterMs: 2, lossRate: 0.0005, retransmitMs: 200 },
  wan: { baseMs: [5, 80], jitterMs: 20, lossRate: 0.003, retransmitMs: 250 },
} as const satisfies Record<string, DelayProfile>;

export class SimPath {
  readonly from: number;
  readonly to: number;
  /** Number of cuts in force; packets pass at 0. */
  cuts = 0;
  /** When the last cut began. */
  cutSince = 0;
  /** Delays are multiplied by this. */
  slowness = 1;
  #profile: DelayProfile;
  #base: number;
  #random: Prng;

  constructor(from: number, to: number, profile: DelayProfile, random: Prng) {
    this.from = from;
    this.to = to;
    this.#profile = profile;
    this.#random = random;
    this.#base = random.between(profile.baseMs[0], profile.baseMs[1]);
  }

  get open(): boolean {
    return this.cuts === 0;
  }

  delay(): number {
    const u = this.#random.next();
    let delay = (this.#base + this.#profile.jitterMs * u * u * u) * this.slowness;
    if (this.#profile.lossRate > 0) {
      let wait = this.#profile.retransmitMs;
      while (this.#random.chance(this.#profile.lossRate)) {
        delay += wait;
        wait *= 2;
      }
    }
    return delay;
  }

  chance(probability: number): boolean {
    return this.#random.chance(probability);
  }

  between(low: number, high: number): number {
    return this.#random.between(low, high);
  }
}
