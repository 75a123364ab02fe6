import { type Address, formatData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";
import type { ActiveRules, TransactionContext } from "../engine.ts";
import { TransactionError } from "../executionErrors.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { forkNumbers, MAX_EXECUTION_GAS } from "./forkNumbers.ts";
import type { IntrinsicGas } from "./intrinsicGas.ts";

const encoder = new TextEncoder();

/** Formats an address in mixed case, as geth does in its messages. Source: EIP-55. */
export const checksumAddress = (address: Address): string => {
  const digits = address.slice(2);
  const hash = formatData(keccak256(encoder.encode(digits))).slice(2);
  const letters = [...digits].map((digit, at) => ((hash[at] ?? "0") >= "8" ? digit.toUpperCase() : digit));
  return `0x${letters.join("")}`;
};

// Each check throws TransactionError with geth's text. Source: geth, core/state_transition.go.

/** The largest nonce. An account with it cannot send (EIP-2681). */
export const MAX_NONCE = 2n ** 64n - 1n;
const UINT256 = 2n ** 256n;
/** EIP-7594 */
const MAX_BLOBS = 6;
const KZG_VERSION = "0x01";
const DELEGATION = Uint8Array.of(0xef, 0x01, 0x00);
const DELEGATION_BYTES = 23;

/** Where a transaction is checked. */
export interface CheckContext extends TransactionContext {
  readonly engine: ActiveRules;
}

export const checkNonce = ({ state, reads }: CheckContext, { from, nonce }: TransactionMessage): void => {
  reads?.account(from, "nonce");
  const next = state.nonceOf(from);
  if (next !== nonce) {
    const detail = `address ${checksumAddress(from)}, tx: ${nonce} state: ${next}`;
    throw next < nonce
      ? new TransactionError("nonceTooHigh", `nonce too high: ${detail}`)
      : new TransactionError("nonceTooLow", `nonce too low: ${detail}`);
  }
  if (next >= MAX_NONCE) {
    throw new TransactionError("nonceMax", `nonce has max value: address ${checksumAddress(from)}, nonce: ${next}`);
  }
};

/** Whether the code delegates to another account (EIP-7702). */
export const isDelegation = (code: Uint8Array): boolean =>
  code.length === DELEGATION_BYTES && DELEGATION.every((byte, at) => code[at] === byte);

export const checkSender = ({ engine, state, reads }: CheckContext, { from, gas }: TransactionMessage): void => {
  const cap = forkNumbers(engine.rules).maxTransactionGas;
  if (engine.isActive(7825) && gas > cap) {
    throw new TransactionError("gasCap", `transaction gas limit too high (cap: ${cap}, tx: ${gas})`);
  }
  reads?.account(from, "code");
  const code = state.codeOf(from);
  if (code.length > 0 && !isDelegation(code)) {
    throw new TransactionError(
      "senderHasCode",
      `sender not an eoa: address ${checksumAddress(from)}, len(code): ${code.length}`,
    );
  }
};

export const checkFees = ({ block, reads }: CheckContext, message: TransactionMessage): void => {
  reads?.environment("BASEFEE");
  const { baseFee } = block;
  const { from, maxFeePerGas, maxPriorityFeePerGas } = message;
  if (maxPriorityFeePerGas > maxFeePerGas) {
    throw new TransactionError(
      "tipAboveFeeCap",
      `max priority fee per gas higher than max fee per gas: address ${checksumAddress(from)}, maxPriorityFeePerGas: ${maxPriorityFeePerGas}, maxFeePerGas: ${maxFeePerGas}`,
    );
  }
  if (maxFeePerGas < baseFee) {
    throw new TransactionError(
      "feeCapTooLow",
      `max fee per gas less than block base fee: address ${checksumAddress(from)}, maxFeePerGas: ${maxFeePerGas}, baseFee: ${baseFee}`,
    );
  }
};

export const checkBlobs = (
  { engine, block, reads }: CheckContext,
  message: TransactionMessage,
  isFree: boolean,
): void => {
  const { blobBaseFee } = block;
  const { blobVersionedHashes, maxFeePerBlobGas, from, to } = message;
  if (to === null) {
    throw new TransactionError("blobs", "blob transaction of type create");
  }
  if (blobVersionedHashes.length === 0) {
    throw new TransactionError("blobs", "blob transaction missing blob hashes");
  }
  if (engine.isActive(7594) && blobVersionedHashes.length > MAX_BLOBS) {
    throw new TransactionError("blobs", "blob transaction has too many blobs");
  }
  const wrong = blobVersionedHashes.findIndex((hash) => !hash.startsWith(KZG_VERSION));
  if (wrong >= 0) {
    throw new TransactionError("blobs", `blob ${wrong} has invalid hash version`);
  }
  if (isFree) {
    return;
  }
  reads?.environment("BLOBBASEFEE");
  if (maxFeePerBlobGas < blobBaseFee) {
    throw new TransactionError(
      "blobFeeCapTooLow",
      `max fee per blob gas less than block blob gas fee: address ${checksumAddress(from)} blobGasFeeCap: ${maxFeePerBlobGas}, blobBaseFee: ${blobBaseFee}`,
    );
  }
};

export const checkAuthorizations = ({ from, to, authorizationList }: TransactionMessage): void => {
  const sender = `(sender ${checksumAddress(from)})`;
  if (to === null) {
    throw new TransactionError("authorizations", `EIP-7702 transaction cannot be used to create contract ${sender}`);
  }
  if (authorizationList.length === 0) {
    throw new TransactionError("authorizations", `EIP-7702 transaction with empty auth list ${sender}`);
  }
};

interface Charge {
  readonly blobGas: bigint;
  /** The charge for gas and blobs, at their actual prices. */
  readonly charged: bigint;
  readonly extraCost: bigint;
}

export const checkFunds = (
  { state, reads }: CheckContext,
  message: TransactionMessage,
  { blobGas, charged, extraCost }: Charge,
): void => {
  const { from, gas, maxFeePerGas, maxFeePerBlobGas, value } = message;
  const have = state.balanceOf(from);
  const want = gas * maxFeePerGas + blobGas * maxFeePerBlobGas + value + extraCost;
  if (want >= UINT256 || charged >= UINT256) {
    throw new TransactionError(
      "insufficientFunds",
      `insufficient funds for gas * price + value: address ${checksumAddress(from)} required balance exceeds 256 bits`,
    );
  }
  if (want > 0n) {
    reads?.account(from, "balance");
  }
  if (have >= want) {
    return;
  }
  throw new TransactionError(
    "insufficientFunds",
    `insufficient funds for gas * price + value: address ${checksumAddress(from)} have ${have} want ${want}`,
  );
};

/** Compares the gas limit with the intrinsic gas, and the size of init code with its limit (EIP-3860). */
export const checkLimits = (
  engine: ActiveRules,
  { gas, to, input }: TransactionMessage,
  { intrinsic, floor }: IntrinsicGas,
): void => {
  if (gas < intrinsic) {
    throw new TransactionError("intrinsicGas", `intrinsic gas too low: have ${gas}, want ${intrinsic}`);
  }
  if (gas < floor) {
    throw new TransactionError("floorGas", `insufficient gas for floor data gas cost: have ${gas}, want ${floor}`);
  }
  // EIP-3860: twice the size of code.
  const limit = 2n * forkNumbers(engine.rules).maxCodeBytes;
  if (to === null && engine.isActive(3860) && input.length > limit) {
    throw new TransactionError("initCodeSize", `max initcode size exceeded: code size ${input.length} limit ${limit}`);
  }
};

/** Compares the gas before execution with the cap of execution (EIP-8037). */
export const checkExecutionCap = (engine: ActiveRules, { intrinsic, floor }: IntrinsicGas): void => {
  if (engine.isActive(8037) && (intrinsic > MAX_EXECUTION_GAS || floor > MAX_EXECUTION_GAS)) {
    throw new TransactionError(
      "floorGas",
      `insufficient gas for floor data gas cost: intrinsic cost ${intrinsic}, floor: ${floor}`,
    );
  }
};
