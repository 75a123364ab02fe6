import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { MAX_EXECUTION_GAS } from "../evm/checks/transactionChecks.ts";
import type { TransactionResult } from "../evm/engine.ts";

export interface BlockGasOptions {
  readonly limit: bigint;
  /** The rules have two sums of gas (EIP-8037). */
  readonly isAmsterdam: boolean;
  readonly validates: boolean;
}

/** The gas of a simulated block. Source: geth, core/gaspool.go, and sanitizeCall in internal/ethapi/simulate.go. */
export class BlockGasPool {
  readonly #options: BlockGasOptions;
  #used = 0n;
  #execution = 0n;
  #state = 0n;

  constructor(options: BlockGasOptions) {
    this.#options = options;
  }

  /** The highest gas limit of a further call. */
  get available(): bigint {
    const { limit, isAmsterdam, validates } = this.#options;
    if (!isAmsterdam) {
      return limit - this.#used;
    }
    const [execution, state] = [limit - this.#execution, limit - this.#state];
    // Execution reserves at most its cap, which only validation has.
    return validates && execution >= MAX_EXECUTION_GAS ? state : smaller(execution, state);
  }

  /** The header's `gasUsed`. */
  get used(): bigint {
    return this.#options.isAmsterdam ? larger(this.#execution, this.#state) : this.#used;
  }

  add({ gasUsed, blockGas }: TransactionResult): void {
    this.#used += gasUsed;
    this.#execution += blockGas?.execution ?? 0n;
    this.#state += blockGas?.state ?? 0n;
  }
}
