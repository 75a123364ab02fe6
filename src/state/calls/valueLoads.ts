import type { UnitsOf } from "../../access/providerUnits.ts";
import type { BlockId } from "../../core/heads.ts";
import type { StateFetcher } from "../fetch/stateFetcher.ts";
import type { StateCost } from "../stateCost.ts";
import type { StateFollower } from "../stateFollower.ts";
import { keyName, type StateKey } from "../stateKey.ts";
import type { ValueStore } from "../store/valueStore.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";

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

export interface ValueLoaderOptions {
  readonly values: Pick<ValueStore, "get" | "code">;
  readonly follower: Pick<StateFollower, "add" | "generation">;
  readonly reader: Pick<StateFetcher, "unitsFor" | "read" | "fetch">;
  readonly unitsOf: UnitsOf;
}

/** Reads values that runs need from nodes, in bulk, and adds them to the known state. */
export class ValueLoader {
  readonly #options: ValueLoaderOptions;

  constructor(options: ValueLoaderOptions) {
    this.#options = options;
  }

  /** Returns the units that loading these keys costs. Codes of unknown contracts come on top. */
  unitsFor(keys: readonly StateKey[], block: BlockId): number {
    const { unitsOf, reader } = this.#options;
    const { unknown, codes } = this.#plan(keys, block);
    return reader.unitsFor(unknown, block) + codes.length * unitsOf("eth_getCode");
  }

  /** Loads values after a block. A value that no node returns stays unknown. Never rejects. */
  async load(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<void> {
    const { follower, reader, unitsOf } = this.#options;
    const { generation } = follower;
    const { unknown } = this.#plan(keys, block);
    let node: string | undefined;
    const onGiver = (giver: string | undefined): void => {
      node = giver;
    };
    for (const [key, value] of unknown.length === 0 ? [] : await reader.read(unknown, block, onSpent, onGiver)) {
      follower.add({ key, value, node }, block, generation);
    }
    const { codes } = this.#plan(keys, block);
    if (codes.length > 0) {
      onSpent(codes.length * unitsOf("eth_getCode"));
      await this.#loadCodes(codes, block, generation);
    }
  }

  /** Separates keys whose value is unknown from those of codes whose hash alone is known. Equal codes are loaded once. */
  #plan(keys: readonly StateKey[], block: BlockId) {
    const { values } = this.#options;
    const unknown = new Map<string, StateKey>();
    const codes = new Map<string, StateKey>();
    for (const key of keys) {
      const value = values.get(key, block);
      if (value === undefined) {
        unknown.set(keyName(key), key);
      } else if (key.field === "code" && values.code(value) === undefined) {
        codes.set(value, key);
      }
    }
    return { unknown: [...unknown.values()], codes: [...codes.values()] };
  }

  async #loadCodes(keys: readonly StateKey[], block: BlockId, generation: number): Promise<void> {
    const { reader, follower } = this.#options;
    const fetched = await reader.fetch(keys, [], block).catch(() => undefined);
    for (const [key, hash] of fetched?.values ?? []) {
      const code = hash === ZERO_VALUE ? new Uint8Array(0) : fetched?.codes.get(String(hash));
      if (code !== undefined) {
        follower.add({ key, value: code, node: fetched?.node }, block, generation);
      }
    }
  }
}
