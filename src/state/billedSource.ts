import type { BlockId } from "../core/heads.ts";
import type { UnitLedger } from "./unitLedger.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "./writeSet.ts";

/** Counts the units of a source. A read that fails costs as much as one that succeeds, unless no node supports the source. */
export class BilledSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #ledger: Pick<UnitLedger, "spend">;

  constructor(source: WriteSetSource, ledger: Pick<UnitLedger, "spend">) {
    this.#source = source;
    this.#ledger = ledger;
  }

  get origin(): WriteSetSource["origin"] {
    return this.#source.origin;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const outcome = await this.#source.read(block, signal);
    if (outcome !== "unsupported") {
      this.#ledger.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}
