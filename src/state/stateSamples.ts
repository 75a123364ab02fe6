import type { BlockId } from "../core/heads.ts";
import type { BulkReader } from "./bulkReader.ts";
import type { SampleRate } from "./sampleRate.ts";
import { parseSingle } from "./singleReads.ts";
import type { StateDifference } from "./stateAudit.ts";
import type { StateKey } from "./stateKey.ts";
import type { UnitLedger } from "./unitLedger.ts";

export interface StateSamplesOptions {
  readonly reader: Pick<BulkReader, "readSingly">;
  readonly ledger: Pick<UnitLedger, "spend">;
  readonly rate: Pick<SampleRate, "take">;
  onCompared(values: number): void;
  onDifference(difference: StateDifference): void;
}

const decoder = new TextDecoder();

/** Compares a share of local answers with a node, at the block of the answer. */
export class StateSamples {
  readonly #options: StateSamplesOptions;

  constructor(options: StateSamplesOptions) {
    this.#options = options;
  }

  /** Called with each local answer. Returns the comparison, if this answer is compared. */
  consider(key: StateKey, block: BlockId, body: Uint8Array): Promise<void> | undefined {
    return this.#options.rate.take() ? this.#compare(key, block, body) : undefined;
  }

  async #compare(key: StateKey, block: BlockId, body: Uint8Array): Promise<void> {
    const { reader, ledger, onCompared, onDifference } = this.#options;
    const known = parseSingle(key, JSON.parse(decoder.decode(body))) ?? "";
    const actual = (await reader.readSingly([key], block, (units) => ledger.spend("sample", units))).get(key);
    if (actual === undefined) {
      return;
    }
    onCompared(1);
    if (actual !== known) {
      onDifference({ key, block, known, actual });
    }
  }
}
