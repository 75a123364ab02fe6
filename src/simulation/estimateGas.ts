import { larger, smaller } from "../ethereum/bigintOrder.ts";
import { MAX_EXECUTION_GAS } from "../evm/checks/forkNumbers.ts";
import type { TransactionResult } from "../evm/engine.ts";
import { TransactionError } from "../evm/executionErrors.ts";
import { OUT_OF_GAS } from "../evm/halts/haltText.ts";
import type { Steps } from "../evm/reads/complete.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type CallExecution, type CallSource, callError } from "./callExecution.ts";

const TRANSFER_GAS = 21_000n;
const CALL_STIPEND = 2_300n;
/** geth's `estimateGasErrorRatio`, in thousandths: an estimate may be too high by this share. */
const ESTIMATE_TOLERANCE = 15n;

/** Returns the lowest gas with which the call succeeds, within the tolerance. Source: geth, eth/gasestimator. Throws RpcError. */
export const estimateGas = async (execution: CallExecution, { step, ...source }: Steps): Promise<bigint> => {
  const start = await step(() => ({
    isTransfer: isTransfer(execution, source),
    high: highestGas(execution, source),
  }));
  let { high } = start;
  const runWith = (gas: bigint) => step(() => runIfSuccessful(execution, source, gas));
  const transfer = start.isTransfer ? await runWith(TRANSFER_GAS) : undefined;
  if (transfer !== undefined) {
    return transfer.gasUsed;
  }
  const first = await step(() => runIfStarted(execution, source, start.high));
  if (first === undefined || first.halt?.startsWith(OUT_OF_GAS)) {
    throw new RpcError(CODES.SERVER, `gas required exceeds allowance (${high})`);
  }
  if (first.status !== "success") {
    throw callError(first);
  }
  let low = first.gasUsed - 1n;
  const optimistic = ((first.maxUsedGas + CALL_STIPEND) * 64n) / 63n;
  if (optimistic < high) {
    if ((await runWith(optimistic)) === undefined) {
      low = optimistic;
    } else {
      high = optimistic;
    }
  }
  while (low + 1n < high && (high - low) * 1_000n >= high * ESTIMATE_TOLERANCE) {
    // Most calls need little more gas than they use, so the search starts in the lower half.
    const middle = smaller((high + low) / 2n, low * 2n);
    if ((await runWith(middle)) === undefined) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
};

const isTransfer = (execution: CallExecution, source: CallSource): boolean => {
  const { input, to } = execution.call;
  return input.length === 0 && to !== null && execution.state(source).codeOf(to).length === 0;
};

/** Returns the highest gas for the call: the block's limit and, with a price, the gas that the sender can pay. */
const highestGas = (execution: CallExecution, source: CallSource): bigint => {
  const { call, engine, block, gasCap } = execution;
  const hasGas = call.gas !== undefined && call.gas >= TRANSFER_GAS;
  if (!hasGas) {
    source.reads?.environment("GASLIMIT");
  }
  let high = hasGas ? call.gas : block.gasLimit;
  const price = call.gasPrice ?? call.maxFeePerGas ?? 0n;
  if (price > 0n) {
    const available = execution.state(source).balanceOf(call.from) - call.value;
    if (available <= 0n) {
      throw new RpcError(CODES.SERVER, "insufficient funds for transfer");
    }
    high = smaller(high, available / price);
  }
  if (engine.isActive(7825) && !engine.isActive(8037)) {
    high = smaller(high, MAX_EXECUTION_GAS);
  }
  return larger(smaller(high, gasCap), 0n);
};

/** Returns undefined if the gas does not suffice to start. */
const runIfStarted = async (
  execution: CallExecution,
  source: CallSource,
  gas: bigint,
): Promise<TransactionResult | undefined> => {
  try {
    return await execution.run(source, gas);
  } catch (error) {
    const cause = error instanceof RpcError ? error.cause : undefined;
    if (!(cause instanceof TransactionError)) {
      throw error;
    }
    if (cause.fault === "intrinsicGas" || cause.fault === "gasCap") {
      return undefined;
    }
    throw new RpcError(CODES.SERVER, `failed with ${gas} gas: ${cause.message}`, { cause });
  }
};

const runIfSuccessful = async (
  execution: CallExecution,
  source: CallSource,
  gas: bigint,
): Promise<TransactionResult | undefined> => {
  try {
    const result = await execution.run(source, gas);
    return result.status === "success" ? result : undefined;
  } catch (error) {
    // The gas does not suffice to start.
    if (error instanceof RpcError) {
      return undefined;
    }
    throw error;
  }
};
