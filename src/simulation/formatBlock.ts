import { formatHeader } from "../ethereum/blockHeader.ts";
import { formatData, formatQuantity, type Quantity } from "../ethereum/hex.ts";
import { bytesLength, listLength } from "../ethereum/rlp.ts";
import { SIMULATE_CODES, type Withdrawal } from "./payload.ts";
import { revertReason } from "./revertReason.ts";
import { encodeWithdrawal, type SimulatedBlock } from "./simulateBlock.ts";
import type { SimulatedCall } from "./simulateCall.ts";
import { formatSimulated, type SimulatedLocation } from "./simulatedTransaction.ts";

/** `object`: {code, message, data}, like nodes. `string`: only the reason; returnData has the bytes. */
export type ErrorShape = "object" | "string";

export interface FormatOptions {
  readonly errorShape: ErrorShape;
  readonly returnsFullTransactions: boolean;
}

const CAPPED = " (gas limit was capped by the RPC server's global gas cap)";

/** One element of the result of eth_simulateV1. The calls are formatted one by one, because their bytes can be many. */
export interface FormattedBlock extends Readonly<Record<string, unknown>> {
  readonly calls: Iterable<Record<string, unknown>>;
}

/** Formats one element of the result of eth_simulateV1. */
export const formatBlock = (block: SimulatedBlock, options: FormatOptions): FormattedBlock => {
  const { header, hash, transactions, withdrawals, rules } = block;
  const location: SimulatedLocation = {
    blockHash: hash,
    blockNumber: header.number,
    blockTimestamp: header.timestamp,
    baseFee: header.baseFeePerGas ?? 0n,
    chainId: rules.chainId,
  };
  return {
    ...formatHeader(header, hash),
    size: sizeOf(block),
    transactions: transactions.map((transaction, at) =>
      options.returnsFullTransactions ? formatSimulated(transaction, at, location) : transaction.hash,
    ),
    uncles: [],
    ...(header.withdrawalsRoot === undefined ? {} : { withdrawals: withdrawals.map(formatWithdrawal) }),
    calls: formatCalls(block, options.errorShape),
  };
};

const formatCalls = function* (block: SimulatedBlock, errorShape: ErrorShape): Generator<Record<string, unknown>> {
  let firstLogIndex = 0;
  for (const [at, call] of block.calls.entries()) {
    const logs = formatLogs(block, at, firstLogIndex);
    firstLogIndex += logs.length;
    yield formatCall(call, logs, errorShape);
  }
};

/** Returns the length of rlp([header, transactions, ommers, withdrawals]). */
const sizeOf = ({ header, headerLength, transactions, withdrawals }: SimulatedBlock): Quantity => {
  const payload = transactions.reduce(
    (sum, { raw, message }) => sum + (message.type === 0 ? raw.length : bytesLength(raw)),
    0,
  );
  const ommers = listLength(0);
  const paid = withdrawals.reduce((sum, withdrawal) => sum + encodeWithdrawal(withdrawal).length, 0);
  const tail = header.withdrawalsRoot === undefined ? ommers : ommers + listLength(paid);
  return formatQuantity(listLength(headerLength + listLength(payload) + tail));
};

const formatWithdrawal = ({ index, validatorIndex, address, amount }: Withdrawal) => ({
  index: formatQuantity(index),
  validatorIndex: formatQuantity(validatorIndex),
  address,
  amount: formatQuantity(amount),
});

const formatLogs = (block: SimulatedBlock, at: number, firstLogIndex: number): Record<string, unknown>[] => {
  const { header, hash, calls, transactions } = block;
  return (calls[at]?.result.logs ?? []).map(({ address, topics, data }, index) => ({
    address,
    topics,
    data,
    blockNumber: formatQuantity(header.number),
    transactionHash: transactions[at]?.hash,
    transactionIndex: formatQuantity(at),
    blockHash: hash,
    blockTimestamp: formatQuantity(header.timestamp),
    logIndex: formatQuantity(firstLogIndex + index),
    removed: false,
  }));
};

const formatCall = (call: SimulatedCall, logs: readonly unknown[], errorShape: ErrorShape): Record<string, unknown> => {
  const { result, isCapped } = call;
  const { status, returnData, gasUsed, maxUsedGas } = result;
  const used = { gasUsed: formatQuantity(gasUsed), maxUsedGas: formatQuantity(maxUsedGas) };
  if (status === "success") {
    return { returnData: formatData(returnData), logs, ...used, status: "0x1" };
  }
  const failed = { returnData: "0x", logs, ...used, status: "0x0" };
  if (status === "halt") {
    const message = `${result.halt ?? "execution failed"}${isCapped ? CAPPED : ""}`;
    return { ...failed, error: errorShape === "string" ? message : { message, code: SIMULATE_CODES.VM_ERROR } };
  }
  const reason = revertReason(returnData);
  if (errorShape === "string") {
    return { ...failed, returnData: formatData(returnData), error: reason ?? "execution reverted" };
  }
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return { ...failed, error: { message, code: SIMULATE_CODES.REVERTED, data: formatData(returnData) } };
};
