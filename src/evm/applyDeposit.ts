import { isOpForkActive } from "../ethereum/rules.ts";
import type { DepositTransaction } from "../ethereum/transaction.ts";
import { endTransaction, runTransaction, type TransactionOptions, type TransactionResult } from "./applyTransaction.ts";
import type { BlockEnvironment, Engine } from "./engine.ts";
import { intrinsicGas } from "./intrinsicGas.ts";
import type { StateOverlay } from "./stateOverlay.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

const NOTHING = new Uint8Array(0);

export interface DepositResult extends TransactionResult {
  /** The sender's nonce before it, as the receipt has it. */
  readonly nonce: bigint;
}

/**
 * OP stack, specs/protocol/deposits.md: never refused. What it mints stays when it fails, and the nonce is used up.
 * One that cannot even begin uses all its gas.
 */
export const applyDeposit = async (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  deposit: DepositTransaction,
  options: TransactionOptions = {},
): Promise<DepositResult> => {
  const nonce = state.nonceOf(deposit.from);
  if (deposit.mint > 0n) state.addBalance(deposit.from, deposit.mint);
  const message: TransactionMessage = {
    type: deposit.type,
    from: deposit.from,
    to: deposit.to,
    nonce,
    gas: deposit.gas,
    value: deposit.value,
    input: deposit.input,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
    accessList: [],
    maxFeePerBlobGas: 0n,
    blobVersionedHashes: [],
    authorizationList: [],
  };
  const { intrinsic, floor } = intrinsicGas(engine, message);
  const isPossible = deposit.gas >= intrinsic && deposit.gas >= floor && state.balanceOf(deposit.from) >= deposit.value;
  if (!isPossible) return refuse(engine, state, deposit, nonce);
  const cost = { gasPrice: 0n, isFree: true, blobGas: 0n, blobFee: 0n, intrinsic, floor };
  const { destroyed, ...result } = await runTransaction(engine, state, block, message, cost, options);
  endTransaction(engine, state, destroyed);
  const gasUsed = isOpForkActive(engine.rules, "regolith") ? result.gasUsed : bedrockGas(deposit);
  return { ...result, gasUsed, blobGasUsed: 0n, nonce };
};

const refuse = (engine: Engine, state: StateOverlay, deposit: DepositTransaction, nonce: bigint): DepositResult => {
  state.setNonce(deposit.from, nonce + 1n);
  endTransaction(engine, state, []);
  const gasUsed = isOpForkActive(engine.rules, "regolith") ? deposit.gas : bedrockGas(deposit);
  return {
    status: "halt",
    halt: "failed deposit",
    returnData: NOTHING,
    gasUsed,
    maxUsedGas: gasUsed,
    blobGasUsed: 0n,
    logs: [],
    capturedLogs: 0,
    nonce,
  };
};

/** Before Regolith a deposit's gas was its limit, a system transaction's nothing. */
const bedrockGas = (deposit: DepositTransaction): bigint => (deposit.isSystemTx ? 0n : deposit.gas);
