import { type Address, formatData, type Hash, type Hex } from "../../src/ethereum/hex.ts";
import { keccak256, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { concatBytes } from "../../src/ethereum/rlp.ts";
import { encodeDeposit } from "../../src/ethereum/transaction.ts";
import type { Anvil } from "./anvil.ts";

export const L1_BLOCK: Address = "0x4200000000000000000000000000000000000015";
export const L1_ATTRIBUTES_SENDER: Address = "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001";
export const SEQUENCER_FEE_VAULT: Address = "0x4200000000000000000000000000000000000011";

/** The constant values of L1Block: the L1 of this chain does not advance. */
const BASE_FEE_SCALAR = 1_368n;
const BLOB_BASE_FEE_SCALAR = 810_949n;
const L1_BASE_FEE = 1_000_000_000n;
const L1_BLOB_BASE_FEE = 1n;
const OPERATOR_FEE_SCALAR = 3n;
const OPERATOR_FEE_CONSTANT = 7n;
const DA_FOOTPRINT_GAS_SCALAR = 400n;
const JOVIAN_SELECTOR = 0x3db6be2bn;
const DEPOSIT_GAS = 1_000_000n;
const ZERO_WORD = new Uint8Array(32);

const bytesOf = (value: bigint, size: number): Uint8Array =>
  Uint8Array.fromHex(value.toString(16).padStart(size * 2, "0"));

const word = (parts: readonly (readonly [at: number, size: number, value: bigint])[]): Hex => {
  const bytes = new Uint8Array(32);
  for (const [at, size, value] of parts) {
    bytes.set(bytesOf(value, size), at);
  }
  return formatData(bytes);
};

/** Writes the fee parameters into the storage of L1Block (docs/reference/op-stack.md, L1 attributes). */
export const prepareL1Block = async (anvil: Anvil): Promise<void> => {
  const slots: readonly (readonly [number, Hex])[] = [
    [1, word([[0, 32, L1_BASE_FEE]])],
    [3, word([[16, 4, BASE_FEE_SCALAR], [20, 4, BLOB_BASE_FEE_SCALAR]])], // biome-ignore format: one slot a line
    [7, word([[0, 32, L1_BLOB_BASE_FEE]])],
    [8, word([[18, 2, DA_FOOTPRINT_GAS_SCALAR], [20, 4, OPERATOR_FEE_SCALAR], [24, 8, OPERATOR_FEE_CONSTANT]])], // biome-ignore format: one slot a line
  ];
  for (const [slot, value] of slots) {
    await anvil.call("anvil_setStorageAt", L1_BLOCK, formatData(bytesOf(BigInt(slot), 32)), value);
  }
  // Without code the account is empty, and EIP-161 deletes an empty account and its storage. 00 is STOP.
  await anvil.call("anvil_setCode", L1_BLOCK, "0x00");
};

/** The first transaction of a block on the OP stack, in the form of Jovian. */
export const encodeL1Attributes = (blockNumber: bigint, timestamp: bigint): Uint8Array => {
  const l1Hash = keccak256(bytesOf(1n, 32));
  const input = concatBytes([
    bytesOf(JOVIAN_SELECTOR, 4),
    bytesOf(BASE_FEE_SCALAR, 4),
    bytesOf(BLOB_BASE_FEE_SCALAR, 4),
    bytesOf(blockNumber, 8),
    bytesOf(timestamp, 8),
    bytesOf(1n, 8),
    bytesOf(L1_BASE_FEE, 32),
    bytesOf(L1_BLOB_BASE_FEE, 32),
    l1Hash,
    ZERO_WORD,
    bytesOf(OPERATOR_FEE_SCALAR, 4),
    bytesOf(OPERATOR_FEE_CONSTANT, 8),
    bytesOf(DA_FOOTPRINT_GAS_SCALAR, 2),
  ]);
  return encodeDeposit({
    sourceHash: sourceHash(l1Hash, blockNumber),
    from: L1_ATTRIBUTES_SENDER,
    to: L1_BLOCK,
    mint: 0n,
    value: 0n,
    gas: DEPOSIT_GAS,
    isSystemTx: false,
    input,
  });
};

/** Domain 1: keccak(1, keccak(L1 hash, sequence number)). The block number makes it unique while the L1 block does not change. */
const sourceHash = (l1Hash: Uint8Array, sequenceNumber: bigint): Hash =>
  keccak256Hex(concatBytes([bytesOf(1n, 32), keccak256(concatBytes([l1Hash, bytesOf(sequenceNumber, 32)]))]));
