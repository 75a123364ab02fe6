import type { HeaderFields, Heads } from "../core/heads.ts";
import { nextBaseFee } from "../ethereum/blockFees.ts";
import { isData, isQuantity, parseData } from "../ethereum/hex.ts";
import { type ChainForks, isOpForkActive, newestRulesAt } from "../ethereum/rules.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";

interface FeeParent extends Omit<Parameters<typeof nextBaseFee>[0], "blobGasUsed"> {
  readonly number: bigint;
  readonly timestamp: bigint;
  /** Undefined if the header or the message lacks it. */
  readonly blobGasUsed: bigint | undefined;
}

const parentOf = (header: HeaderFields | undefined): FeeParent | undefined => {
  const { number, timestamp, gasLimit, gasUsed, baseFeePerGas, blobGasUsed, extraData } = header ?? {};
  return isQuantity(number) &&
    isQuantity(timestamp) &&
    isQuantity(gasLimit) &&
    isQuantity(gasUsed) &&
    isQuantity(baseFeePerGas) &&
    (blobGasUsed === undefined || isQuantity(blobGasUsed)) &&
    isData(extraData)
    ? {
        number: BigInt(number),
        timestamp: BigInt(timestamp),
        gasLimit: BigInt(gasLimit),
        gasUsed: BigInt(gasUsed),
        baseFeePerGas: BigInt(baseFeePerGas),
        blobGasUsed: blobGasUsed === undefined ? undefined : BigInt(blobGasUsed),
        extraData: parseData(extraData),
      }
    : undefined;
};

/** Predicts the base fee of the next block, as long as the newest sealed block has the one that follows from its parent. */
export class BaseFeeRule {
  readonly #forks: () => ChainForks | undefined;
  #holds = false;

  constructor(forks: () => ChainForks | undefined) {
    this.#forks = forks;
  }

  follow(heads: Heads): void {
    const { number } = heads.latest;
    const parent = parentOf(heads.header(number - 1n));
    const sealed = parentOf(heads.header(number));
    if (parent !== undefined && sealed !== undefined) {
      this.#holds = this.#next(parent) === sealed.baseFeePerGas;
    }
  }

  /** Returns the base fee of the block after this one, if its messages are complete. `undefined`: it is not known. */
  readonly after = ({ messages }: BlockMessages): bigint | undefined => {
    const environment = messages[0]?.environment;
    const commitments = messages.at(-1)?.commitments;
    return this.#holds && environment && commitments
      ? this.#next({
          ...environment,
          extraData: parseData(environment.extraData),
          gasUsed: commitments.gasUsed,
          blobGasUsed: commitments.blobGasUsed,
        })
      : undefined;
  };

  /** Since Jovian, `blobGasUsed` counts. Without it, the base fee is not known. */
  #next(parent: FeeParent): bigint | undefined {
    const forks = this.#forks();
    const rules = forks && newestRulesAt(forks, parent.number, parent.timestamp);
    if (rules === undefined || (parent.blobGasUsed === undefined && isOpForkActive(rules, "jovian"))) {
      return undefined;
    }
    return nextBaseFee({ ...parent, blobGasUsed: parent.blobGasUsed ?? 0n }, rules);
  }
}
