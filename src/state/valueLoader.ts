import type { UnitsOf } from "../access/providerUnits.ts";
import type { BlockId } from "../core/heads.ts";
import type { ProofReader } from "./fetch/proofReader.ts";
import type { FetchedValues, StateFetcher } from "./fetch/stateFetcher.ts";
import type { StateFollower } from "./stateFollower.ts";
import { keyName, type StateKey } from "./stateKey.ts";
import type { ValueStore } from "./store/valueStore.ts";

type Reader = Pick<StateFetcher, "unitsFor" | "read" | "readSingly">;

export interface ValueLoaderOptions {
  readonly values: Pick<ValueStore, "get" | "code" | "gradeOf">;
  readonly follower: Pick<StateFollower, "beginRead">;
  readonly reader: Reader;
  readonly unitsOf: UnitsOf;
  /** Undefined: no value is read by proof. */
  readonly proofs?: Pick<ProofReader, "isWanted" | "unitsFor" | "readOwn"> | undefined;
}

/** Unknown values come by proof if that costs at most this many times as much as in bulk. */
const MAX_PROOF_PRICE = 8;

interface Plan {
  readonly unknown: readonly StateKey[];
  /** Known without a proof. */
  readonly stated: readonly StateKey[];
  /** Codes whose hash alone is known. */
  readonly codes: readonly StateKey[];
}

/** Reads values from nodes, in bulk, and adds them to the known state. */
export class ValueLoader {
  readonly #options: ValueLoaderOptions;

  constructor(options: ValueLoaderOptions) {
    this.#options = options;
  }

  /** Whether values after this block are loaded by proof. */
  mayProve(block: BlockId): boolean {
    return this.#options.proofs?.isWanted(block) === true;
  }

  /** Returns the units that loading these keys costs. Codes of unknown contracts come on top. */
  unitsFor(keys: readonly StateKey[], block: BlockId): number {
    const { unitsOf, reader, proofs } = this.#options;
    const plan = this.#plan(keys, block);
    const { proven, bulk } = this.#ways(plan, block);
    const units = (proofs?.unitsFor(proven) ?? 0) + reader.unitsFor(bulk, block);
    return units + plan.codes.length * unitsOf("eth_getCode");
  }

  /** Returns the units that loading these values in bulk costs. */
  unitsForValues(keys: readonly StateKey[], block: BlockId): number {
    return this.#options.reader.unitsFor(this.#plan(keys, block).unknown, block);
  }

  /**
   * Loads values after a block, and the bytes of codes among them. Known ones are proven if that is possible. A value that no node
   * returns stays unknown, and so do values that a second origin lacks. Never rejects.
   */
  async load(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<void> {
    await this.#prove(this.#ways(this.#plan(keys, block), block).proven, block, onSpent);
    await this.loadValues(this.#plan(keys, block).unknown, block, onSpent);
    await this.#add(block, (reader) => reader.readSingly(this.#plan(keys, block).codes, block, onSpent));
  }

  /**
   * Separates keys to read by proof from those to read in bulk. If later blocks carry proofs, known values without one are proven,
   * and unknown ones if that is not too expensive. A proof has many slots of one account, so that many calls share its price.
   */
  #ways(
    { unknown, stated }: Plan,
    block: BlockId,
  ): { readonly proven: readonly StateKey[]; readonly bulk: readonly StateKey[] } {
    const { reader, proofs } = this.#options;
    if (proofs?.isWanted(block) !== true) {
      return { proven: [], bulk: unknown };
    }
    const all = [...unknown, ...stated];
    const units = proofs.unitsFor(all) - proofs.unitsFor(stated);
    const isCheap = units <= MAX_PROOF_PRICE * reader.unitsFor(unknown, block);
    return isCheap ? { proven: all, bulk: [] } : { proven: stated, bulk: unknown };
  }

  /** Loads values by proof. Never rejects. */
  async #prove(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<void> {
    const { follower, proofs } = this.#options;
    if (keys.length === 0 || proofs === undefined) {
      return;
    }
    const enter = follower.beginRead();
    onSpent(proofs.unitsFor(keys));
    for (const { values } of await proofs.readOwn(keys, block)) {
      enter({ values, grade: "proven" }, block);
    }
  }

  /** Loads unknown values in bulk, of a code the hash. Never rejects. */
  loadValues(keys: readonly StateKey[], block: BlockId, onSpent: (units: number) => void): Promise<void> {
    return this.#add(block, (reader) => reader.read(keys, block, onSpent));
  }

  async #add(block: BlockId, read: (reader: Reader) => Promise<FetchedValues>): Promise<void> {
    const { follower, reader } = this.#options;
    const enter = follower.beginRead();
    enter(await read(reader), block);
  }

  /**
   * Separates keys whose value is unknown, those of codes whose hash alone is known, and those whose value is known without a proof.
   * Equal codes are loaded once.
   */
  #plan(keys: readonly StateKey[], block: BlockId): Plan {
    const { values } = this.#options;
    const unknown = new Map<string, StateKey>();
    const codes = new Map<string, StateKey>();
    const stated: StateKey[] = [];
    for (const key of keys) {
      const value = values.get(key, block);
      if (value === undefined) {
        unknown.set(keyName(key), key);
      } else if (key.field === "code" && values.code(value) === undefined) {
        codes.set(value, key);
      } else if (values.gradeOf(key, block) !== "proven") {
        stated.push(key);
      }
    }
    return { unknown: [...unknown.values()], stated, codes: [...codes.values()] };
  }
}
