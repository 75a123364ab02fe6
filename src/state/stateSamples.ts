import type { BlockId } from "../core/heads.ts";
import type { BlockValues } from "./blockValues.ts";
import type { OriginComparison } from "./originComparison.ts";
import { parseSingle } from "./singleReads.ts";
import type { StateCost } from "./stateCost.ts";
import type { StateDifference } from "./stateDifference.ts";
import type { StateKey } from "./stateKey.ts";

export interface StateSamplesOptions {
  readonly values: Pick<BlockValues, "sourceOf">;
  readonly comparison: Pick<OriginComparison, "nodeBeside">;
  readonly cost: Pick<StateCost, "spend" | "takeSample">;
  onCompared(values: number): void;
  onDifference(difference: StateDifference): void;
}

const decoder = new TextDecoder();

/** Compares a share of local answers with a node of another origin than that of the value, at the block of the answer. */
export class StateSamples {
  readonly #options: StateSamplesOptions;

  constructor(options: StateSamplesOptions) {
    this.#options = options;
  }

  /** Called with each local answer. Returns the comparison, if this answer is compared. */
  consider(key: StateKey, block: BlockId, body: Uint8Array): Promise<void> | undefined {
    return this.#options.cost.takeSample() ? this.#compare(key, block, body) : undefined;
  }

  async #compare(key: StateKey, block: BlockId, body: Uint8Array): Promise<void> {
    const { values, comparison, cost, onCompared, onDifference } = this.#options;
    const node = comparison.nodeBeside(values.sourceOf(key, block)?.node);
    if (node === undefined) {
      return;
    }
    const known = parseSingle(key, JSON.parse(decoder.decode(body))) ?? "";
    const actual = (await node.reader.readSingly([key], block, (units) => cost.spend("sample", units))).get(key);
    if (actual === undefined) {
      return;
    }
    onCompared(1);
    if (actual !== known) {
      onDifference({ key, block, known, actual, node: node.name });
    }
  }
}
