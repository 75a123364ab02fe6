import type { BlockId } from "../core/heads.ts";
import type { BlockValues } from "./blockValues.ts";
import type { BulkReader } from "./bulkReader.ts";
import type { OriginComparison } from "./originComparison.ts";
import type { StateCost } from "./stateCost.ts";
import type { StateDifference } from "./stateDifference.ts";
import type { StateKey } from "./stateKey.ts";
import { MAX_AUDIT_UNITS } from "./unitBudget.ts";

export interface StateAuditOptions {
  readonly values: Pick<BlockValues, "get" | "head">;
  readonly comparison: Pick<OriginComparison, "nextNode">;
  readonly cost: Pick<StateCost, "usedKeys" | "budget" | "spend">;
  readonly random: () => number;
  onCompared(values: number): void;
  onDifference(difference: StateDifference): void;
}

/** Known values that one audit compares. Half of them are the most used ones. */
const MAX_VALUES = 2_000;
/** A nonce costs as much as 400 other values. */
const MAX_NONCES = 5;

type Reader = Pick<BulkReader, "unitsFor" | "read" | "readSingly">;

/** Compares known values with a node. The origins take turns. The ledger limits its units. */
export class StateAudit {
  readonly #options: StateAuditOptions;
  readonly #spend = (units: number): void => this.#options.cost.spend("audit", units);
  #isRunning = false;

  constructor(options: StateAuditOptions) {
    this.#options = options;
  }

  /** Compares once, unless nothing is known, the last audit is still running, or too little was saved since. */
  async run(): Promise<void> {
    const { values, comparison, cost } = this.#options;
    const block = values.head;
    const node = block === undefined || this.#isRunning ? undefined : comparison.nextNode();
    if (block === undefined || node === undefined) {
      return;
    }
    const { reader } = node;
    const known = this.#choose(block, reader);
    const keys = [...known.keys()];
    if (keys.length === 0 || reader.unitsFor(keys, block) > cost.budget.forAudit) {
      return;
    }
    this.#isRunning = true;
    try {
      await this.#compare(known, block, node);
    } finally {
      this.#isRunning = false;
    }
  }

  /** Returns known values whose audit costs no more than the ledger can allow. */
  #choose(block: BlockId, reader: Reader): ReadonlyMap<StateKey, string> {
    let limit = MAX_VALUES;
    let known = this.#knownValues(block, limit);
    while (limit > 1 && reader.unitsFor([...known.keys()], block) > MAX_AUDIT_UNITS) {
      limit = Math.floor(limit / 2);
      known = this.#knownValues(block, limit);
    }
    return known;
  }

  #knownValues(block: BlockId, limit: number): ReadonlyMap<StateKey, string> {
    const { values, random } = this.#options;
    const { usedKeys } = this.#options.cost;
    const half = Math.ceil(limit / 2);
    const known = new Map<StateKey, string>();
    let nonces = 0;
    for (const key of new Set([...usedKeys.mostUsed(half), ...usedKeys.sample(half, random)])) {
      const value = values.get(key, block);
      if (value === undefined || (key.field === "nonce" && nonces === MAX_NONCES)) {
        continue;
      }
      nonces += key.field === "nonce" ? 1 : 0;
      known.set(key, value);
    }
    return known;
  }

  async #compare(
    known: ReadonlyMap<StateKey, string>,
    block: BlockId,
    { name, reader }: { readonly name: string; readonly reader: Reader },
  ): Promise<void> {
    const { onCompared, onDifference } = this.#options;
    const actual = await reader.read([...known.keys()], block, this.#spend);
    onCompared(actual.size);
    const suspects = [...actual].filter(([key, value]) => value !== known.get(key)).map(([key]) => key);
    const [first] = suspects;
    if (first === undefined) {
      return;
    }
    // The node may read many values wrongly, but one value correctly.
    const confirmed = (await reader.readSingly([first], block, this.#spend)).get(first);
    const value = known.get(first);
    if (confirmed !== undefined && value !== undefined && confirmed !== value) {
      onDifference({ key: first, block, known: value, actual: confirmed, node: name });
    }
  }
}
