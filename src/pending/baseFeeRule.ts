import type { HeaderFields, Heads } from "../core/heads.ts";
import { nextBaseFee } from "../ethereum/blockFees.ts";
import { type Data, parseData } from "../ethereum/hex.ts";
import { type ChainForks, isOpForkActive, newestRulesAt } from "../ethereum/rules.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import { dataOf, ifWellFormed, isAbsent, numberOf } from "../verification/jsonFields.ts";

interface FeeParent {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly baseFeePerGas: bigint;
  /** Undefined if the header or the message lacks it. */
  readonly blobGasUsed: bigint | undefined;
  readonly extraData: Data;
}

/** Throws MalformedField. */
const parentOf = ({ number, timestamp, gasLimit, gasUsed, ...header }: HeaderFields): FeeParent => ({
  number: numberOf(number),
  timestamp: numberOf(timestamp),
  gasLimit: numberOf(gasLimit),
  gasUsed: numberOf(gasUsed),
  baseFeePerGas: numberOf(header.baseFeePerGas),
  blobGasUsed: isAbsent(header.blobGasUsed) ? undefined : numberOf(header.blobGasUsed),
  extraData: dataOf(header.extraData),
});

/** Predicts the base fee of the next block, as long as the newest sealed block has the one that follows from its parent. */
export class BaseFeeRule {
  readonly #forks: () => ChainForks | undefined;
  #holds = false;

  constructor(forks: () => ChainForks | undefined) {
    this.#forks = forks;
  }

  follow(heads: Heads): void {
    const { number } = heads.latest;
    const parent = heads.header(number - 1n);
    const sealed = heads.header(number);
    if (parent !== undefined && sealed !== undefined) {
      const holds = (): boolean => this.#next(parentOf(parent)) === numberOf(sealed.baseFeePerGas);
      this.#holds = ifWellFormed(holds, this.#holds);
    }
  }

  /** Returns the base fee of the block after this one, if its messages are complete. `undefined`: it is not known. */
  readonly after = ({ messages }: BlockMessages): bigint | undefined => {
    const environment = messages[0]?.environment;
    const commitments = messages.at(-1)?.commitments;
    return this.#holds && environment && commitments ? this.#next({ ...environment, ...commitments }) : undefined;
  };

  /** Since Jovian, `blobGasUsed` counts. Without it, the base fee is not known. */
  #next(parent: FeeParent): bigint | undefined {
    const forks = this.#forks();
    const rules = forks && newestRulesAt(forks, parent.number, parent.timestamp);
    const { blobGasUsed } = parent;
    if (rules === undefined || (blobGasUsed === undefined && isOpForkActive(rules, "jovian"))) {
      return undefined;
    }
    return nextBaseFee({ ...parent, blobGasUsed: blobGasUsed ?? 0n, extraData: parseData(parent.extraData) }, rules);
  }
}
