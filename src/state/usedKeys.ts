import type { StateKey } from "./stateKey.ts";

/** Keys that one generation remembers. Reads of others count as new. */
const MAX_KEYS = 100_000;

/** `sameBlock`: an equal read named this block or a newer one. `repeated`: one named an older block. */
export type Repetition = "new" | "repeated" | "sameBlock";

interface Use {
  readonly key: StateKey;
  /** The newest block that was read. */
  block: bigint;
  /** Blocks at which the key was read. */
  count: number;
}

/** The uses since one moment, by key. */
interface Generation {
  readonly uses: Map<string, Use>;
  readonly sinceMs: number;
}

const begin = (sinceMs: number): Generation => ({ uses: new Map(), sinceMs });

/** Remembers which values were read, for one to two periods. */
export class UsedKeys {
  readonly #periodMs: number;
  readonly #nowMs: () => number;
  #current = begin(Number.NEGATIVE_INFINITY);
  #previous = begin(Number.NEGATIVE_INFINITY);

  constructor(periodMs: number, nowMs: () => number) {
    this.#periodMs = periodMs;
    this.#nowMs = nowMs;
  }

  /** The number of different keys of the last period, approximately. */
  get size(): number {
    this.#rotate();
    return Math.max(this.#current.uses.size, this.#previous.uses.size);
  }

  /** Remembers a read, and compares it with earlier ones. */
  record(key: StateKey, block: bigint): Repetition {
    this.#rotate();
    const name = key.field + key.address + (key.slot ?? "");
    const { uses } = this.#current;
    const earlier = this.#previous.uses.get(name);
    const use = uses.get(name) ?? (uses.size < MAX_KEYS ? remember(uses, name, key, earlier) : earlier);
    if (use === undefined) {
      return "new";
    }
    if (use.count > 0 && use.block >= block) {
      return "sameBlock";
    }
    use.block = block;
    use.count += 1;
    return use.count > 1 ? "repeated" : "new";
  }

  /** Returns the keys that were read at the most blocks, the most used first. */
  mostUsed(limit: number): readonly StateKey[] {
    return this.#all()
      .sort((a, b) => b.count - a.count)
      .slice(0, limit)
      .map(({ key }) => key);
  }

  /** Returns keys at random. Each is returned once. */
  sample(limit: number, random: () => number): readonly StateKey[] {
    const uses = this.#all();
    const count = Math.min(limit, uses.length);
    for (let index = 0; index < count; index++) {
      const other = index + Math.floor(random() * (uses.length - index));
      const [one, two] = [uses[index], uses[other]];
      if (one !== undefined && two !== undefined) {
        uses[index] = two;
        uses[other] = one;
      }
    }
    return uses.slice(0, count).map(({ key }) => key);
  }

  #all(): Use[] {
    this.#rotate();
    return [...new Map([...this.#previous.uses, ...this.#current.uses]).values()];
  }

  #rotate(): void {
    const nowMs = this.#nowMs();
    const ageMs = nowMs - this.#current.sinceMs;
    if (ageMs < this.#periodMs) {
      return;
    }
    this.#previous = ageMs < 2 * this.#periodMs ? this.#current : begin(nowMs);
    this.#current = begin(nowMs);
  }
}

const remember = (uses: Map<string, Use>, name: string, key: StateKey, earlier: Use | undefined): Use => {
  const use = { key, block: earlier?.block ?? 0n, count: earlier?.count ?? 0 };
  uses.set(name, use);
  return use;
};
