import { parseData } from "../ethereum/hex.ts";
import { BASE_FEE_VAULT, OPERATOR_FEE_VAULT, operatorFee } from "../ethereum/opFees.ts";
import { parsePostExec, refundsByIndex } from "../ethereum/postExec.ts";
import type { ExecutionContext } from "../evm/engine.ts";
import { NotExecutableError } from "../evm/executionErrors.ts";
import { l1AttributesOf } from "../evm/opChainFees.ts";
import type { ExecutableMessage, Executed, Payer } from "./executableMessage.ts";

/** The post-exec transaction gives back gas that no transaction has paid. The message is wrong. */
export class InvalidRefund extends Error {
  override readonly name = "InvalidRefund";
}

/** Gas that a block gives back, by the index of the transaction in the block. */
export type Refunds = ReadonlyMap<number, bigint>;

/**
 * Returns the refunds of a message's block. `count` is the number of the block's transactions up to this message. Throws NotExecutableError
 * for bytes that are no post-exec transaction, because another chain may use the type, and InvalidRefund.
 */
export const refundsOf = ({ postExec, environment }: ExecutableMessage, count: number): Refunds => {
  if (postExec === undefined) {
    return new Map();
  }
  const parsed = parsePostExec(parseData(postExec));
  if (parsed === undefined) {
    throw new NotExecutableError("the transaction that ends the block cannot be read");
  }
  if (parsed.blockNumber !== environment.number || parsed.refunds.some(({ index }) => index >= count)) {
    throw new InvalidRefund("the refunds are not those of this block");
  }
  return refundsByIndex(parsed);
};

/** Returns the block's earlier transactions with these refunds, which a later message may change. The same list if none changes. */
export const withRefunds = (earlier: readonly Executed[], refunds: Refunds): readonly Executed[] => {
  if (earlier.every(({ refund }, index) => refund === (refunds.get(index) ?? 0n))) {
    return earlier;
  }
  let cumulativeGasUsed = 0n;
  return earlier.map((executed, index) => {
    const refund = refunds.get(index) ?? 0n;
    cumulativeGasUsed += executed.gasUsed - refund;
    return { ...executed, refund, receipt: { ...executed.receipt, cumulativeGasUsed } };
  });
};

interface Refund {
  readonly payer: Payer | undefined;
  /** Of the transaction, before the refund. */
  readonly gasUsed: bigint;
  /** What was given back before. */
  readonly from: bigint;
  readonly to: bigint;
}

/**
 * Gives back gas after a transaction: the sender gets what the fee recipient and the vaults were paid for it.
 * Source: https://specs.optimism.io/protocol/lagoon/post-exec.html
 */
export const settleRefund = (
  { engine, state, block }: ExecutionContext,
  { payer, gasUsed, from, to }: Refund,
): void => {
  if (payer === undefined || to > gasUsed) {
    throw new InvalidRefund("a transaction gets back more gas than it has paid");
  }
  const { rules } = engine;
  const l1 = l1AttributesOf({ state });
  const gas = to - from;
  const operator = operatorFee(rules, l1, gasUsed - from) - operatorFee(rules, l1, gasUsed - to);
  const amounts = [
    [payer.sender, gas * payer.gasPrice + operator],
    [block.coinbase, -gas * (payer.gasPrice - block.baseFee)],
    [BASE_FEE_VAULT, -gas * block.baseFee],
    [OPERATOR_FEE_VAULT, -operator],
  ] as const;
  for (const [address, amount] of amounts) {
    if (state.balanceOf(address) + amount < 0n) {
      throw new InvalidRefund(`${address} cannot give back what it has not`);
    }
    if (amount !== 0n) {
      state.addBalance(address, amount);
    }
  }
  state.endTransaction(true);
};

/** Reads what a refund will read, so that no value is missing once the transaction has executed. */
export const readBeforeRefund = ({ state, block }: ExecutionContext, { sender }: Payer): void => {
  l1AttributesOf({ state });
  for (const address of [sender, block.coinbase, BASE_FEE_VAULT, OPERATOR_FEE_VAULT]) {
    state.balanceOf(address);
  }
};
