import { type Address, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import type { BlockEnvironment } from "../../../src/evm/engine.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";

const BENEFICIARY: Address = `0x${"cc".repeat(20)}`;

/** Creates a block of 30 million gas without a base fee. */
export const createBlock = (fields: Partial<BlockEnvironment> = {}): BlockEnvironment => ({
  number: 1n,
  timestamp: 1n,
  coinbase: BENEFICIARY,
  gasLimit: 30_000_000n,
  baseFee: 0n,
  prevRandao: ZERO_HASH,
  blobBaseFee: 1n,
  blockHash: () => ZERO_HASH,
  ...fields,
});

/** Creates a message of type 2 without fee, value and data. Default: it creates a contract. */
export const createMessage = (fields: Partial<TransactionMessage> = {}): TransactionMessage => ({
  type: 2,
  from: ZERO_ADDRESS,
  to: null,
  nonce: 0n,
  gas: 100_000n,
  value: 0n,
  input: new Uint8Array(0),
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  accessList: [],
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: [],
  ...fields,
});
