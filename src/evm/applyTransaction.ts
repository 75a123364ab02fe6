import type { Address } from "../ethereum/hex.ts";
import { CONSENSUS_CHECKS, type Cost, checkTransaction } from "./checkTransaction.ts";
import type { TransactionOptions, TransactionResult } from "./engine.ts";
import type { MessagePlace } from "./evmMessage.ts";
import { endTransaction, runTransaction } from "./runTransaction.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

/** The fees that a chain charges the sender besides gas, and the account that receives the base fee. */
export interface ChainFees {
  /** Known before the transaction runs, e.g. the OP stack's L1 data fee. */
  readonly fixed: bigint;
  readonly fixedTo: Address;
  /** Returns the fee for an amount of gas. It is charged for the limit; the part for unused gas is refunded. */
  perGas(gas: bigint): bigint;
  readonly perGasTo: Address;
  readonly baseFeeTo: Address;
}

interface ApplyOptions extends Omit<TransactionOptions, "raw"> {
  readonly fees?: ChainFees | undefined;
}

/** Checks a transaction, charges the sender, runs it and pays refunds and fees. Throws TransactionError. */
export const applyTransaction = async (
  context: MessagePlace,
  message: TransactionMessage,
  options: ApplyOptions = {},
): Promise<TransactionResult> => {
  const { state } = context;
  const { fees } = options;
  const fixed = fees?.fixed ?? 0n;
  const limitFee = fees?.perGas(message.gas) ?? 0n;
  const cost = checkTransaction(context, message, options.checks ?? CONSENSUS_CHECKS, fixed + limitFee);
  state.addBalance(message.from, -(message.gas * cost.gasPrice + cost.blobFee + fixed + limitFee));
  const { destroyed, ...result } = await runTransaction(context, message, cost, options);
  applyRefunds(context, message, cost, { gasUsed: result.gasUsed, fees });
  endTransaction(context, destroyed);
  return { ...result, blobGasUsed: cost.blobGas };
};

interface Refunds {
  readonly gasUsed: bigint;
  readonly fees: ChainFees | undefined;
}

/** Pays unused gas back to the sender, the tip to the block's beneficiary, and the chain's fees to its vaults. */
const applyRefunds = (
  { engine, state, block }: MessagePlace,
  message: TransactionMessage,
  cost: Cost,
  { gasUsed, fees }: Refunds,
): void => {
  state.addBalance(message.from, (message.gas - gasUsed) * cost.gasPrice);
  const baseFee = engine.isActive(1559) ? block.baseFee : 0n;
  if (!cost.isFree) {
    state.addBalance(block.coinbase, gasUsed * (cost.gasPrice - baseFee));
  }
  if (fees === undefined) {
    return;
  }
  const usedFee = fees.perGas(gasUsed);
  state.addBalance(message.from, fees.perGas(message.gas) - usedFee);
  if (!cost.isFree) {
    state.addBalance(fees.baseFeeTo, gasUsed * baseFee);
  }
  state.addBalance(fees.fixedTo, fees.fixed);
  state.addBalance(fees.perGasTo, usedFee);
};
