/** A file of a simulated disk: what its readers see, and what of it would survive a loss of power. */
import type { Prng } from './prng.ts';

/** What a disk writes as a whole. */
export const sectorBytes = 512;

export class SimDiskFile {
  /** As readers see it. */
  content = new Uint8Array(0);
  /** As it is on the medium. */
  #durable = new Uint8Array(0);
  /** Sectors that differ from the medium and are still to be written. */
  #dirty = new Set<number>();

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length;
    if (end > this.content.length) this.#resize(end);
    this.content.set(bytes, position);
    for (let sector = Math.floor(position / sectorBytes); sector * sectorBytes < end; sector++) this.#dirty.add(sector);
  }

  truncate(size: number): void {
    this.#resize(size);
    // What a later write puts there must not be mixed with what was there before.
    if (size % sectorBytes > 0) this.#dirty.add(Math.floor(size / sectorBytes));
  }

  sync(): void {
    this.#durable = this.#settled((sector) => this.#dirty.has(sector), this.content.length);
    this.#dirty.clear();
  }

  /** A sync that fails: some of it was written, and the kernel forgets that the rest was not. */
  failSync(random: Prng): void {
    const kept = [...this.#dirty].filter(() => random.chance(0.5));
    this.#durable = this.#settled((sector) => kept.includes(sector), this.content.length);
    this.#dirty.clear();
  }

  /** What is left of it. `share` of what was not synced had reached the medium, in no order. */
  afterPowerLoss(random: Prng, share: number): SimDiskFile {
    const left = new SimDiskFile();
    const kept = [...this.#dirty].filter(() => random.chance(share));
    const size = random.chance(share) ? this.content.length : this.#durable.length;
    left.content = this.#settled((sector) => kept.includes(sector), size);
    left.#durable = left.content.slice();
    return left;
  }

  /** The medium with these sectors written: `size` bytes, zeros where nothing ever was. */
  #settled(written: (sector: number) => boolean, size: number): Uint8Array<ArrayBuffer> {
    const next = new Uint8Array(size);
    next.set(this.#durable.subarray(0, size));
    for (let at = 0; at < size; at += sectorBytes) {
      if (!written(at / sectorBytes)) continue;
      const sector = this.content.subarray(at, Math.min(at + sectorBytes, size));
      next.fill(0, at, Math.min(at + sectorBytes, size));
      next.set(sector, at);
    }
    return next;
  }

  #resize(size: number): void {
    const next = new Uint8Array(size);
    next.set(this.content.subarray(0, size));
    this.content = next;
  }
}
