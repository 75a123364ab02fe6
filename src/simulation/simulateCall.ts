import { larger, smaller } from "../ethereum/bigintOrder.ts";
import type { Address } from "../ethereum/hex.ts";
import { MAX_EXECUTION_GAS } from "../evm/checks/forkNumbers.ts";
import type { Engine, ExecutionContext, TransactionChecks, TransactionResult } from "../evm/engine.ts";
import { TransactionError, type TransactionFault } from "../evm/executionErrors.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import type { TransactionMessage } from "../evm/transactionMessage.ts";
import { tooLarge } from "../jsonrpc/response.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { CallRequest } from "./callRequest.ts";
import { SIMULATE_CODES } from "./payload.ts";
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

interface CallContext extends ExecutionContext {
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

/**
 * geth never checks in simulations that the sender has no code (EIP-3607), nor the cap of the gas limit. From Amsterdam on, execution
 * has its cap with and without validation (EIP-8037).
 */
const checksOf = (validates: boolean): TransactionChecks => ({ nonce: validates, sender: false, freeGas: !validates });

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

interface BlockGasOptions {
  readonly limit: bigint;
  /** The rules have two sums of gas (EIP-8037). */
  readonly isAmsterdam: boolean;
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
    const { limit, isAmsterdam } = this.#options;
    if (!isAmsterdam) {
      return limit - this.#used;
    }
    const [execution, state] = [limit - this.#execution, limit - this.#state];
    // Execution reserves at most its cap. The rest of a gas limit is for state alone.
    return execution >= MAX_EXECUTION_GAS ? state : smaller(execution, state);
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

/** Text of a call without its bytes and logs, and of a log without its data. */
const CALL_BYTES = 160;
const LOG_BYTES = 480;
const TOPIC_BYTES = 69;
/** Text of a whole transaction without its input. */
const TRANSACTION_BYTES = 900;

/** Limits the text of a simulation's result while it executes. */
export class OutputLimit {
  readonly #maxBytes: number;
  readonly #returnsFullTransactions: boolean;
  #bytes = 0;

  constructor(maxBytes: number, returnsFullTransactions: boolean) {
    this.#maxBytes = maxBytes;
    this.#returnsFullTransactions = returnsFullTransactions;
  }

  /** Counts a call. Throws RpcError above the limit. */
  add({ result: { returnData, logs }, message }: SimulatedCall): void {
    this.#bytes += CALL_BYTES + 2 * returnData.length;
    for (const { topics, data } of logs) {
      this.#bytes += LOG_BYTES + TOPIC_BYTES * topics.length + data.length;
    }
    if (this.#returnsFullTransactions) {
      this.#bytes += TRANSACTION_BYTES + 2 * message.input.length;
    }
    if (this.#bytes > this.#maxBytes) {
      throw tooLarge(this.#maxBytes);
    }
  }
}
