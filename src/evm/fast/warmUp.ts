import type { StateReader } from "../../core/stateReader.ts";
import { type Address, formatData, ZERO_ADDRESS, ZERO_HASH } from "../../ethereum/hex.ts";
import { keccak256Hex } from "../../ethereum/keccak.ts";
import type { BlockEnvironment, Engine } from "../engine.ts";
import type { TransactionMessage } from "../transactionMessage.ts";

const AT: Address = `0x${"01".repeat(20)}`;
const NOTHING = new Uint8Array(0);
const GAS = 1_000_000n;
/** Dispatches on a selector, writes a mapping's slot, logs, calls itself, and returns. */
const CODE = Uint8Array.from(
  Buffer.from("5f3560e01c8014600b57005b335f5260405f208054600101905533335f60205fa35f5f5f5f30611000fa5060205ff3", "hex"),
);
const CODE_HASH = keccak256Hex(CODE);

const READER: StateReader = {
  account: (address) => (address === AT ? { nonce: 1n, balance: 0n, codeHash: CODE_HASH } : undefined),
  code: () => CODE,
  storage: () => NOTHING,
  blockHash: () => ZERO_HASH,
};
const BLOCK: BlockEnvironment = {
  number: 1n,
  timestamp: 1n,
  coinbase: ZERO_ADDRESS,
  gasLimit: GAS,
  baseFee: 0n,
  prevRandao: ZERO_HASH,
  blobBaseFee: 1n,
  blockHash: () => ZERO_HASH,
};
const MESSAGE: TransactionMessage = {
  type: 2,
  from: ZERO_ADDRESS,
  to: AT,
  nonce: 0n,
  gas: GAS,
  value: 0n,
  input: NOTHING,
  maxFeePerGas: 0n,
  maxPriorityFeePerGas: 0n,
  accessList: [],
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: [],
};

/** Executes a call, so that the first one of a client does not wait until V8 has compiled what it needs. */
export const warmUp = async (engine: Engine): Promise<void> => {
  const state = engine.createState(READER);
  const checks = { nonce: false, sender: false, freeGas: true };
  const { status, halt, returnData } = await engine.transact({ state, block: BLOCK }, MESSAGE, { checks });
  if (status !== "success") {
    throw new Error(`the engine does not execute: ${halt ?? formatData(returnData)}`);
  }
};
