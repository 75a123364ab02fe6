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

  get kind(): WriteSetSource["kind"] {
    return this.#source.kind;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    return this.#bill(this.#source.read(block, signal));
  }

  readFrom(node: string, block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const reading = this.#source.readFrom?.(node, block, signal);
    return reading === undefined ? Promise.resolve("unsupported") : this.#bill(reading);
  }

  async #bill(reading: Promise<WriteSet | WriteSetFailure>): Promise<WriteSet | WriteSetFailure> {
    const outcome = await reading;
    if (outcome !== "unsupported") {
      this.#ledger.spend("writeSets", this.unitsPerBlock);
    }
    return outcome;
  }
}
