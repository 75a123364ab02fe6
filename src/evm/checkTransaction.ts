import { smaller } from "../ethereum/bigintOrder.ts";
import { checksumAddress } from "./checksumAddress.ts";
import type { BlockEnvironment, Engine } from "./engine.ts";
import { intrinsicGas } from "./intrinsicGas.ts";
import type { StateOverlay } from "./stateOverlay.ts";
import { TransactionError } from "./transactionError.ts";
import { BLOB_TYPE, SET_CODE_TYPE, type TransactionMessage } from "./transactionMessage.ts";

export const MAX_NONCE = 2n ** 64n - 1n;
const UINT256 = 2n ** 256n;
const MAX_INIT_CODE_BYTES = 49_152;
/** EIP-7825 */
const MAX_TRANSACTION_GAS = 16_777_216n;
/** EIP-7594 */
const MAX_BLOBS = 6;
const GAS_PER_BLOB = 131_072n;
const KZG_VERSION = "0x01";
const DELEGATION = Uint8Array.of(0xef, 0x01, 0x00);
const DELEGATION_BYTES = 23;

/** What a call that is only tried need not hold. */
export interface TransactionChecks {
  readonly nonce: boolean;
  /** EIP-3607 and EIP-7825. */
  readonly sender: boolean;
  /** With both fees zero there is no base fee either. */
  readonly freeGas: boolean;
}

export const CONSENSUS_CHECKS: TransactionChecks = { nonce: true, sender: true, freeGas: false };

export interface Cost {
  readonly gasPrice: bigint;
  /** Neither the base fee nor a tip is paid. */
  readonly isFree: boolean;
  readonly blobGas: bigint;
  readonly blobFee: bigint;
  readonly intrinsic: bigint;
  readonly floor: bigint;
}

/**
 * What must hold before a transaction runs, in geth's order (core/state_transition.go, preCheck and after), and what it will cost.
 * `extraCost` is what a chain takes besides gas. Throws TransactionError.
 */
export const checkTransaction = (
  engine: Engine,
  state: StateOverlay,
  block: BlockEnvironment,
  message: TransactionMessage,
  checks: TransactionChecks,
  extraCost = 0n,
): Cost => {
  const isFree = checks.freeGas && message.maxFeePerGas === 0n && message.maxPriorityFeePerGas === 0n;
  if (checks.nonce) checkNonce(state, message);
  if (checks.sender) checkSender(engine, state, message);
  if (!isFree && engine.isActive(1559)) checkFees(block, message);
  const blobGas = BigInt(message.blobVersionedHashes.length) * GAS_PER_BLOB;
  if (message.isBlob ?? message.type === BLOB_TYPE) checkBlobs(engine, block, message, checks);
  if (message.isSetCode ?? message.type === SET_CODE_TYPE) checkAuthorizations(message);
  const hasFreeBlobs = checks.freeGas && message.maxFeePerBlobGas === 0n;
  const blobFee = hasFreeBlobs ? 0n : blobGas * block.blobBaseFee;
  const price = isFree ? 0n : gasPrice(engine, block, message);
  checkFunds(state, message, { blobGas, charged: message.gas * price + blobFee, extraCost });
  const { intrinsic, floor } = intrinsicGas(engine, message);
  if (message.gas < intrinsic) {
    throw new TransactionError("intrinsicGas", `intrinsic gas too low: have ${message.gas}, want ${intrinsic}`);
  }
  if (message.gas < floor) {
    throw new TransactionError(
      "floorGas",
      `insufficient gas for floor data gas cost: have ${message.gas}, want ${floor}`,
    );
  }
  if (message.to === null && engine.isActive(3860) && message.input.length > MAX_INIT_CODE_BYTES) {
    throw new TransactionError(
      "initCodeSize",
      `max initcode size exceeded: code size ${message.input.length} limit ${MAX_INIT_CODE_BYTES}`,
    );
  }
  return {
    gasPrice: price,
    isFree,
    blobGas,
    blobFee,
    intrinsic,
    floor,
  };
};

const gasPrice = (engine: Engine, { baseFee }: BlockEnvironment, message: TransactionMessage): bigint => {
  if (!engine.isActive(1559)) return message.maxFeePerGas;
  return smaller(baseFee + message.maxPriorityFeePerGas, message.maxFeePerGas);
};

const checkNonce = (state: StateOverlay, { from, nonce }: TransactionMessage): void => {
  const next = state.nonceOf(from);
  const told = `address ${checksumAddress(from)}, tx: ${nonce} state: ${next}`;
  if (next < nonce) throw new TransactionError("nonceTooHigh", `nonce too high: ${told}`);
  if (next > nonce) throw new TransactionError("nonceTooLow", `nonce too low: ${told}`);
  if (next >= MAX_NONCE) {
    throw new TransactionError("nonceMax", `nonce has max value: address ${checksumAddress(from)}, nonce: ${next}`);
  }
};

export const isDelegation = (code: Uint8Array): boolean =>
  code.length === DELEGATION_BYTES && DELEGATION.every((byte, at) => code[at] === byte);

const checkSender = (engine: Engine, state: StateOverlay, { from, gas }: TransactionMessage): void => {
  if (engine.isActive(7825) && gas > MAX_TRANSACTION_GAS) {
    throw new TransactionError("gasCap", `transaction gas limit too high (cap: ${MAX_TRANSACTION_GAS}, tx: ${gas})`);
  }
  const code = state.codeOf(from);
  if (code.length > 0 && !isDelegation(code)) {
    throw new TransactionError(
      "senderHasCode",
      `sender not an eoa: address ${checksumAddress(from)}, len(code): ${code.length}`,
    );
  }
};

const checkFees = ({ baseFee }: BlockEnvironment, message: TransactionMessage): void => {
  const { from, maxFeePerGas, maxPriorityFeePerGas } = message;
  const address = `address ${checksumAddress(from)}`;
  if (maxPriorityFeePerGas > maxFeePerGas) {
    throw new TransactionError(
      "tipAboveFeeCap",
      `max priority fee per gas higher than max fee per gas: ${address}, maxPriorityFeePerGas: ${maxPriorityFeePerGas}, maxFeePerGas: ${maxFeePerGas}`,
    );
  }
  if (maxFeePerGas < baseFee) {
    throw new TransactionError(
      "feeCapTooLow",
      `max fee per gas less than block base fee: ${address}, maxFeePerGas: ${maxFeePerGas}, baseFee: ${baseFee}`,
    );
  }
};

const checkBlobs = (
  engine: Engine,
  { blobBaseFee }: BlockEnvironment,
  message: TransactionMessage,
  checks: TransactionChecks,
): void => {
  const { blobVersionedHashes, maxFeePerBlobGas, from, to } = message;
  if (to === null) throw new TransactionError("blobs", "blob transaction of type create");
  if (blobVersionedHashes.length === 0) throw new TransactionError("blobs", "blob transaction missing blob hashes");
  if (engine.isActive(7594) && blobVersionedHashes.length > MAX_BLOBS) {
    throw new TransactionError("blobs", `blob transaction has too many blobs (max ${MAX_BLOBS})`);
  }
  const wrong = blobVersionedHashes.findIndex((hash) => !hash.startsWith(KZG_VERSION));
  if (wrong >= 0) throw new TransactionError("blobs", `blob ${wrong} has invalid hash version`);
  if (checks.freeGas && maxFeePerBlobGas === 0n) return;
  if (maxFeePerBlobGas < blobBaseFee) {
    throw new TransactionError(
      "blobFeeCapTooLow",
      `max fee per blob gas less than block blob gas fee: address ${checksumAddress(from)} blobGasFeeCap: ${maxFeePerBlobGas}, blobBaseFee: ${blobBaseFee}`,
    );
  }
};

const checkAuthorizations = ({ from, to, authorizationList }: TransactionMessage): void => {
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
  /** For gas and blobs, at their actual prices. */
  readonly charged: bigint;
  readonly extraCost: bigint;
}

const checkFunds = (
  state: StateOverlay,
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
  if (have >= want) return;
  throw new TransactionError(
    "insufficientFunds",
    `insufficient funds for gas * price + value: address ${checksumAddress(from)} have ${have} want ${want}`,
  );
};
