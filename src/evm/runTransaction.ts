import { larger, smaller } from "../ethereum/bigintOrder.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { isForkActive } from "../ethereum/rules.ts";
import { applyAuthorizations } from "./authorizations.ts";
import type { Cost } from "./checkTransaction.ts";
import type { MessageContext, MessageOptions, MessagePlace, MessageResult } from "./evmMessage.ts";
import { NONCE_OVERFLOW } from "./haltText.ts";
import { MAX_NONCE } from "./transactionChecks.ts";
import type { TransactionMessage } from "./transactionMessage.ts";

/** The result of a transaction's message. `gasUsed` is the transaction's, after refunds. */
export interface RunResult extends Omit<MessageResult, "refund"> {
  /** The highest gas during the run, before refunds. */
  readonly maxUsedGas: bigint;
}

/** Increments the nonce and runs the message. The caller has charged `cost` before, and calls `endTransaction` afterwards. */
export const runTransaction = async (
  context: MessagePlace,
  message: TransactionMessage,
  cost: Cost,
  options: MessageOptions,
): Promise<RunResult> => {
  const { engine, state } = context;
  const { from, to, value, input, gas } = message;
  const nonce = state.nonceOf(from);
  if (to === null && nonce === MAX_NONCE) {
    return rejectedCreation(cost);
  }
  // geth wraps at 2^64 too. It matters only if nonces are not checked.
  state.setNonce(from, BigInt.asUintN(64, nonce + 1n));
  const authorized = applyAuthorizations(state, engine.rules.chainId, message.authorizationList);
  const { refund, ...result } = await engine.run(
    state,
    { caller: from, to, value, data: input, gas: gas - cost.intrinsic },
    messageContext(context, message, { ...options, gasPrice: cost.gasPrice, authorities: authorized.warm }),
  );
  const used = cost.intrinsic + result.gasUsed;
  const maxRefund = used / (engine.isActive(3529) ? 5n : 2n);
  const afterRefund = used - smaller(authorized.refund + refund, maxRefund);
  return { ...result, gasUsed: larger(afterRefund, cost.floor), maxUsedGas: larger(used, cost.floor) };
};

/** Nothing runs or changes, and only the intrinsic gas is used. Source: geth, core/vm/evm.go, create. */
const rejectedCreation = ({ intrinsic, floor }: Cost): RunResult => {
  const gasUsed = larger(intrinsic, floor);
  const nothing = { returnData: new Uint8Array(0), logs: [], capturedLogs: 0, destroyed: [] };
  return { ...nothing, status: "halt", halt: NONCE_OVERFLOW, gasUsed, maxUsedGas: gasUsed };
};

interface ContextOptions extends MessageOptions {
  readonly gasPrice: bigint;
  /** Accounts that signed an authorization. */
  readonly authorities: readonly Address[];
}

/** Lists the addresses and slots that are warm from the beginning. Source: EIP-2929, EIP-2930 and EIP-3651. */
const messageContext = (
  { engine, block }: MessagePlace,
  { from, to, accessList, blobVersionedHashes }: TransactionMessage,
  { gasPrice, authorities, tracesTransfers, tracesAccess, movedPrecompiles }: ContextOptions,
): MessageContext => {
  const warmAddresses = [from, ...engine.precompiles, ...authorities];
  if (to !== null) {
    warmAddresses.push(to);
  }
  if (engine.isActive(3651)) {
    warmAddresses.push(block.coinbase);
  }
  const warmSlots: [Address, Hash][] = [];
  for (const { address, storageKeys } of accessList) {
    warmAddresses.push(address);
    for (const slot of storageKeys) {
      warmSlots.push([address, slot]);
    }
  }
  return {
    block,
    gasPrice,
    blobVersionedHashes,
    warmAddresses,
    warmSlots,
    tracesTransfers,
    tracesAccess,
    movedPrecompiles,
  };
};

/** Deletes destroyed accounts, and empty accounts if EIP-161 is active. */
export const endTransaction = (
  { engine, state }: Pick<MessagePlace, "engine" | "state">,
  destroyed: readonly Address[],
): void => {
  for (const address of destroyed) {
    state.delete(address);
  }
  state.endTransaction(isForkActive(engine.rules, "spuriousDragon"));
};
