/** One limited place, such as a connection of one address. */
export interface Place {
  /** Identifies all places that are counted together. */
  readonly name: string;
  readonly max: number;
}

/** Counts places that are in use, such as connections by address. */
export class Places {
  readonly #used = new Map<string, number>();

  /** Takes each of these places, or none of them. Returns the name of the first that is full, or undefined. */
  take(places: readonly Place[]): string | undefined {
    const full = places.find(({ name, max }) => (this.#used.get(name) ?? 0) >= max);
    if (full === undefined) {
      for (const { name } of places) {
        this.#used.set(name, (this.#used.get(name) ?? 0) + 1);
      }
    }
    return full?.name;
  }

  release(names: readonly string[]): void {
    for (const name of names) {
      const used = (this.#used.get(name) ?? 0) - 1;
      if (used > 0) {
        this.#used.set(name, used);
      } else {
        this.#used.delete(name);
      }
    }
  }
}
