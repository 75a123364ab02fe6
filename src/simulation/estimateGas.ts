import type { StateReader } from "../core/stateReader.ts";
import { larger, smaller } from "../ethereum/bigintOrder.ts";
import type { TransactionResult } from "../evm/engine.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type CallExecution, callError } from "./callExecution.ts";

const TRANSFER_GAS = 21_000n;
const CALL_STIPEND = 2_300n;
const MAX_TRANSACTION_GAS = 16_777_216n;
/** geth's `estimateGasErrorRatio`, in thousandths: an estimate may be too high by this share. */
const ESTIMATE_TOLERANCE = 15n;

/** Returns the lowest gas with which the call succeeds, within the tolerance. Source: geth, eth/gasestimator. Throws RpcError. */
export const estimateGas = async (execution: CallExecution, reader: StateReader): Promise<bigint> => {
  const { call } = execution;
  const isTransfer =
    call.input.length === 0 && call.to !== null && execution.state(reader).codeOf(call.to).length === 0;
  let high = await highestGas(execution, reader);
  if (isTransfer && (await runIfSuccessful(execution, reader, TRANSFER_GAS)) !== undefined) {
    return TRANSFER_GAS;
  }
  const first = await execution.run(reader, high);
  if (first.status === "revert") {
    throw callError(first);
  }
  if (first.status === "halt") {
    throw new RpcError(CODES.SERVER, `gas required exceeds allowance (${high})`);
  }
  let low = first.gasUsed - 1n;
  const optimistic = ((first.maxUsedGas + CALL_STIPEND) * 64n) / 63n;
  if (optimistic < high) {
    if ((await runIfSuccessful(execution, reader, optimistic)) === undefined) {
      low = optimistic;
    } else {
      high = optimistic;
    }
  }
  while (low + 1n < high && (high - low) * 1_000n >= high * ESTIMATE_TOLERANCE) {
    // Most calls need little more gas than they use, so the search starts in the lower half.
    const middle = smaller((high + low) / 2n, low * 2n);
    if ((await runIfSuccessful(execution, reader, middle)) === undefined) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
};

/** Returns the highest gas for the call: the block's limit and, with a price, the gas that the sender can pay. */
const highestGas = async (execution: CallExecution, reader: StateReader): Promise<bigint> => {
  const { call, engine, block, gasCap } = execution;
  let high = call.gas !== undefined && call.gas >= TRANSFER_GAS ? call.gas : block.gasLimit;
  const price = call.gasPrice ?? call.maxFeePerGas ?? 0n;
  if (price > 0n) {
    const available = execution.state(reader).balanceOf(call.from) - call.value;
    if (available < 0n) {
      throw new RpcError(CODES.SERVER, "insufficient funds for transfer");
    }
    high = smaller(high, available / price);
  }
  if (engine.isActive(7825)) {
    high = smaller(high, MAX_TRANSACTION_GAS);
  }
  return larger(smaller(high, gasCap), 0n);
};

const runIfSuccessful = async (
  execution: CallExecution,
  reader: StateReader,
  gas: bigint,
): Promise<TransactionResult | undefined> => {
  try {
    const result = await execution.run(reader, gas);
    return result.status === "success" ? result : undefined;
  } catch (error) {
    // The gas does not suffice to start.
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
};
