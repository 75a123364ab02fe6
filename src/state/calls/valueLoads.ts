import type { BlockId } from "../../core/heads.ts";
import type { StateCost } from "../stateCost.ts";
import type { StateKey } from "../stateKey.ts";
import type { ValueLoader } from "../valueLoader.ts";

/** The values that one client's call lacks. */
export interface WantedValues {
  readonly clientId: string;
  readonly keys: readonly StateKey[];
}

export interface ValueLoadsOptions {
  readonly loader: Pick<ValueLoader, "load" | "unitsFor">;
  readonly cost: Pick<StateCost, "budget" | "spend">;
}

const keysOf = (wanted: readonly WantedValues[]): readonly StateKey[] => wanted.flatMap(({ keys }) => keys);

/** Loads values together for the calls of several clients, within the budget of each and of the chain. */
export class ValueLoads {
  readonly #options: ValueLoadsOptions;

  constructor(options: ValueLoadsOptions) {
    this.#options = options;
  }

  /** Returns those that may be loaded now. Of each client, and of all: the first ones, or the first half of them, and so on. */
  affordable<Wanted extends WantedValues>(wanted: readonly Wanted[], block: BlockId): readonly Wanted[] {
    const { budget } = this.#options.cost;
    const allowed = new Set<Wanted>();
    for (const [clientId, own] of Map.groupBy(wanted, (each) => each.clientId)) {
      for (const each of this.#within(own, block, budget.forLearningOf(clientId))) {
        allowed.add(each);
      }
    }
    return this.#within(
      wanted.filter((each) => allowed.has(each)),
      block,
      budget.forLearning,
    );
  }

  /** Never rejects. */
  async load(wanted: readonly WantedValues[], block: BlockId): Promise<void> {
    const { loader, cost } = this.#options;
    const keys = keysOf(wanted);
    if (keys.length === 0) {
      return;
    }
    await loader.load(keys, block, (units) => {
      for (const [clientId, own] of Map.groupBy(wanted, (each) => each.clientId)) {
        cost.spend("learning", (units * keysOf(own).length) / keys.length, clientId);
      }
    });
  }

  #within<Wanted extends WantedValues>(wanted: readonly Wanted[], block: BlockId, units: number): readonly Wanted[] {
    let count = wanted.length;
    while (count > 0 && this.#options.loader.unitsFor(keysOf(wanted.slice(0, count)), block) > units) {
      count = Math.floor(count / 2);
    }
    return wanted.slice(0, count);
  }
}
