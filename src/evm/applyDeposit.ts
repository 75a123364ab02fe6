import { isOpForkActive } from "../ethereum/rules.ts";
import type { DepositTransaction } from "../ethereum/transaction.ts";
import type { ActiveRules, DepositResult } from "./engine.ts";
import type { MessagePlace } from "./evmMessage.ts";
import { intrinsicGas } from "./intrinsicGas.ts";
import { endTransaction, runTransaction } from "./runTransaction.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

const NOTHING = new Uint8Array(0);

/**
 * Executes a deposit. A deposit is never rejected: if it fails, its mint remains and its nonce is used.
 * A deposit that cannot start uses all its gas. Source: https://specs.optimism.io/protocol/deposits.html
 */
export const applyDeposit = async (context: MessagePlace, deposit: DepositTransaction): Promise<DepositResult> => {
  const { engine, state } = context;
  const nonce = state.nonceOf(deposit.from);
  if (deposit.mint > 0n) {
    state.addBalance(deposit.from, deposit.mint);
  }
  const message = messageOfDeposit(deposit, nonce);
  const { intrinsic, floor } = intrinsicGas(engine, message);
  const canStart = deposit.gas >= intrinsic && deposit.gas >= floor && state.balanceOf(deposit.from) >= deposit.value;
  if (!canStart) {
    return failedDeposit(context, deposit, nonce);
  }
  const cost = { gasPrice: 0n, isFree: true, blobGas: 0n, blobFee: 0n, intrinsic, floor };
  const { destroyed, ...result } = await runTransaction(context, message, cost, {});
  endTransaction(context, destroyed);
  return { ...result, gasUsed: gasUsed(engine, deposit, result.gasUsed), blobGasUsed: 0n, nonce };
};

const messageOfDeposit = (
  { type, from, to, gas, value, input }: DepositTransaction,
  nonce: bigint,
): TransactionMessage => ({
  type,
  from,
  to,
  nonce,
  gas,
  value,
  input,
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  accessList: [],
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: [],
});

const failedDeposit = (context: MessagePlace, deposit: DepositTransaction, nonce: bigint): DepositResult => {
  context.state.setNonce(deposit.from, nonce + 1n);
  endTransaction(context, []);
  const used = gasUsed(context.engine, deposit, deposit.gas);
  return {
    status: "halt",
    halt: "failed deposit",
    returnData: NOTHING,
    gasUsed: used,
    maxUsedGas: used,
    blobGasUsed: 0n,
    logs: [],
    capturedLogs: 0,
    nonce,
  };
};

/** Before Regolith a deposit uses its gas limit, and a system transaction uses no gas. */
const gasUsed = ({ rules }: ActiveRules, { isSystemTx, gas }: DepositTransaction, used: bigint): bigint => {
  if (isOpForkActive(rules, "regolith")) {
    return used;
  }
  return isSystemTx ? 0n : gas;
};
