import { smaller } from "../ethereum/bigintOrder.ts";
import type { Address } from "../ethereum/hex.ts";
import type { Engine, ExecutionContext, TransactionChecks, TransactionResult } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import { TransactionError, type TransactionFault } from "../evm/transactionError.ts";
import type { TransactionMessage } from "../evm/transactionMessage.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { BlockGasPool } from "./blockGasPool.ts";
import type { CallRequest } from "./callRequest.ts";
import { SIMULATE_CODES } from "./codes.ts";
import { typeOf } from "./simulatedTransaction.ts";

const CODE_OF: Partial<Record<TransactionFault, number>> = {
  nonceTooLow: SIMULATE_CODES.NONCE_TOO_LOW,
  nonceTooHigh: SIMULATE_CODES.NONCE_TOO_HIGH,
  senderHasCode: SIMULATE_CODES.SENDER_NOT_EOA,
  tipAboveFeeCap: CODES.INVALID_PARAMS,
  feeCapTooLow: SIMULATE_CODES.FEE_CAP_TOO_LOW,
  insufficientFunds: SIMULATE_CODES.INSUFFICIENT_FUNDS,
  intrinsicGas: SIMULATE_CODES.INTRINSIC_GAS,
  initCodeSize: SIMULATE_CODES.INIT_CODE_SIZE,
};

/** Creates the error of the whole request for a call that is invalid in any block. Code and text are those of geth. */
const transactionFault = (error: TransactionError, gas: bigint): RpcError =>
  new RpcError(CODE_OF[error.fault] ?? CODES.INTERNAL, `err: ${error.message} (supplied gas ${gas})`, { cause: error });

/** Gas that one request may use, over all its blocks. */
export interface GasBudget {
  left: bigint;
}

export interface CallContext extends ExecutionContext {
  readonly movedPrecompiles: ReadonlyMap<Address, Address | null>;
  readonly validates: boolean;
  readonly tracesTransfers: boolean;
  readonly budget: Readonly<GasBudget>;
  /** Of the block. */
  readonly gas: Pick<BlockGasPool, "available">;
}

export interface SimulatedCall {
  readonly message: TransactionMessage;
  readonly result: TransactionResult;
  /** The call got less gas than it requested. */
  readonly isCapped: boolean;
}

/** geth never checks in simulations that the sender has no code (EIP-3607), nor the cap of the gas limit. */
const checksOf = (validates: boolean): TransactionChecks => ({
  nonce: validates,
  sender: false,
  freeGas: !validates,
  liftsExecutionCap: !validates,
});

/**
 * Executes one call, with geth's defaults, on the state after the previous call. The caller counts its gas.
 * Throws RpcError for an error that fails the whole request.
 */
export const simulateCall = async (call: CallRequest, context: CallContext): Promise<SimulatedCall> => {
  const { engine, state, budget } = context;
  const wanted = gasOf(call, context.gas.available);
  const gas = smaller(wanted, budget.left);
  if (call.nonce === undefined) {
    // The hash of the transaction contains it.
    context.reads?.account(call.from, "nonce");
  }
  const message = messageOfCall(call, state, engine, gas);
  try {
    const result = await engine.transact(context, message, {
      checks: checksOf(context.validates),
      tracesTransfers: context.tracesTransfers,
      movedPrecompiles: context.movedPrecompiles,
    });
    return { message, result, isCapped: gas < wanted };
  } catch (error) {
    throw error instanceof TransactionError ? transactionFault(error, gas) : error;
  }
};

const gasOf = (call: CallRequest, left: bigint): bigint => {
  const gas = call.gas ?? left;
  if (gas <= left) {
    return gas;
  }
  throw new RpcError(SIMULATE_CODES.BLOCK_GAS_LIMIT, `block gas limit reached: remaining: ${left}, required: ${gas}`);
};

export const messageOfCall = (
  call: CallRequest,
  state: ExecutionState,
  engine: Engine,
  gas: bigint,
): TransactionMessage => {
  const { maxFeePerGas, maxPriorityFeePerGas, blobVersionedHashes, authorizationList } = call;
  const { chainId } = engine.rules;
  if (call.gasPrice !== undefined && (maxFeePerGas !== undefined || maxPriorityFeePerGas !== undefined)) {
    throw new RpcError(CODES.SERVER, "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified");
  }
  if (call.chainId !== undefined && call.chainId !== chainId) {
    throw new RpcError(CODES.SERVER, `chainId does not match node's (have=${call.chainId}, want=${chainId})`);
  }
  // Before London a call without a price has the price 0 and type 0.
  const gasPrice = engine.isActive(1559) ? call.gasPrice : (call.gasPrice ?? 0n);
  return {
    type: typeOf({ ...call, gasPrice }),
    from: call.from,
    to: call.to,
    nonce: call.nonce ?? state.nonceOf(call.from),
    gas,
    value: call.value,
    input: call.input,
    maxFeePerGas: gasPrice ?? maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: gasPrice ?? maxPriorityFeePerGas ?? 0n,
    accessList: call.accessList ?? [],
    maxFeePerBlobGas: call.maxFeePerBlobGas ?? 0n,
    blobVersionedHashes: blobVersionedHashes ?? [],
    authorizationList: authorizationList ?? [],
    // geth checks these fields if they are present, for any type. An empty list counts as present.
    isBlob: blobVersionedHashes !== undefined,
    isSetCode: authorizationList !== undefined,
  };
};
