import { smaller } from "../ethereum/bigintOrder.ts";
import type { Address } from "../ethereum/hex.ts";
import { applyTransaction, type TransactionResult } from "../evm/applyTransaction.ts";
import type { TransactionChecks } from "../evm/checkTransaction.ts";
import type { BlockEnvironment, Engine } from "../evm/engine.ts";
import type { StateOverlay } from "../evm/stateOverlay.ts";
import { TransactionError } from "../evm/transactionError.ts";
import type { TransactionMessage } from "../evm/transactionMessage.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { CallRequest } from "./callRequest.ts";
import { SIMULATE_CODES } from "./codes.ts";
import { typeOf } from "./simulatedTransaction.ts";
import { transactionFault } from "./transactionFault.ts";

/** Gas that one request may use in all its blocks. */
export interface GasBudget {
  left: bigint;
}

export interface CallPlace {
  readonly engine: Engine;
  readonly state: StateOverlay;
  readonly block: BlockEnvironment;
  readonly movedPrecompiles: ReadonlyMap<Address, Address | null>;
  readonly validates: boolean;
  readonly tracesTransfers: boolean;
  readonly budget: GasBudget;
}

export interface SimulatedCall {
  readonly message: TransactionMessage;
  readonly result: TransactionResult;
  /** It was given less gas than it asked for. */
  readonly isCapped: boolean;
}

/** The sender's being an account of a person is never asked for, nor EIP-7825's cap: geth skips both in simulations. */
const checksOf = (validates: boolean): TransactionChecks => ({ nonce: validates, sender: false, freeGas: !validates });

/** One call, with geth's defaults, on what the calls before it left. Throws RpcError where it ends the whole request. */
export const simulateCall = async (call: CallRequest, place: CallPlace, gasUsed: bigint): Promise<SimulatedCall> => {
  const { engine, state, block, budget } = place;
  const wanted = gasOf(call, block.gasLimit - gasUsed);
  const gas = smaller(wanted, budget.left);
  const message = messageOfCall(call, state, engine, gas);
  try {
    const result = await applyTransaction(place, message, {
      checks: checksOf(place.validates),
      tracesTransfers: place.tracesTransfers,
      movedPrecompiles: place.movedPrecompiles,
    });
    budget.left -= result.gasUsed;
    return { message, result, isCapped: gas < wanted };
  } catch (error) {
    throw error instanceof TransactionError ? transactionFault(error, gas) : error;
  }
};

const gasOf = (call: CallRequest, left: bigint): bigint => {
  const gas = call.gas ?? left;
  if (gas <= left) return gas;
  throw new RpcError(SIMULATE_CODES.BLOCK_GAS_LIMIT, `block gas limit reached: remaining: ${left}, required: ${gas}`);
};

export const messageOfCall = (
  call: CallRequest,
  state: StateOverlay,
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
  // Before London a call that names no price has the price 0 and is of type 0.
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
    // geth checks these fields wherever they are present, whatever the type, and an empty list is present.
    isBlob: blobVersionedHashes !== undefined,
    isSetCode: authorizationList !== undefined,
  };
};
