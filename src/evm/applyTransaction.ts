import type { Address } from "../ethereum/hex.ts";
import { CONSENSUS_CHECKS, type Cost, checkTransaction, type TransactionChecks } from "./checkTransaction.ts";
import type { ExecutionContext, MessageOptions } from "./engine.ts";
import { endTransaction, type RunResult, runTransaction } from "./runTransaction.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

/** What a chain charges the sender besides gas, and the account that receives the base fee. */
export interface ChainFees {
  /** Known before the transaction runs, e.g. the OP stack's L1 data fee. */
  readonly fixed: bigint;
  readonly fixedTo: Address;
  /** Returns the fee for an amount of gas. It is charged for the limit; the part for unused gas is refunded. */
  perGas(gas: bigint): bigint;
  readonly perGasTo: Address;
  readonly baseFeeTo: Address;
}

export interface TransactionOptions extends MessageOptions {
  readonly checks?: TransactionChecks | undefined;
  readonly fees?: ChainFees | undefined;
}

export interface TransactionResult extends Omit<RunResult, "destroyed"> {
  readonly blobGasUsed: bigint;
}

/** Checks a transaction, charges the sender, runs it and pays refunds and fees. Throws TransactionError and then leaves the state unchanged. */
export const applyTransaction = async (
  context: ExecutionContext,
  message: TransactionMessage,
  options: TransactionOptions = {},
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
  { engine, state, block }: ExecutionContext,
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
