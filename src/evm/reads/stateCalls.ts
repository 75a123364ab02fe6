import type { AccountState } from "../../core/stateReader.ts";
import {
  type Address,
  type Data,
  type Hash,
  isAddress,
  isData,
  isHash,
  isQuantity,
  parseData,
  ZERO_HASH,
} from "../../ethereum/hex.ts";
import { keccak256Hex } from "../../ethereum/keccak.ts";
import { stripZeros } from "../../ethereum/rlp.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";
import { unavailable } from "../../jsonrpc/rpcError.ts";

/** Creates the error for a node's response of another form. Clients see it: it is no fault of forebay. */
const invalid = (what: string) => unavailable(`a node returned an invalid ${what}`);

export interface FoundAccount {
  readonly account: AccountState | undefined;
  readonly code: Uint8Array;
}

const at = (block: Hash) => ({ blockHash: block });

/** Returns the three calls that read an account. */
export const accountCalls = (block: Hash, address: Address): readonly Call[] => [
  createCall("eth_getBalance", [address, at(block)]),
  createCall("eth_getTransactionCount", [address, at(block)]),
  createCall("eth_getCode", [address, at(block)]),
];

/** Parses the results of `accountCalls`, in their order. Throws if one has another form. */
export const parseAccount = ([balance, nonce, code]: readonly unknown[]): FoundAccount => {
  if (!isQuantity(balance) || !isQuantity(nonce) || !isData(code)) {
    throw invalid("account");
  }
  return accountOf(BigInt(balance), BigInt(nonce), parseData(code));
};

/** An empty account counts as one that does not exist (EIP-161). */
const accountOf = (balance: bigint, nonce: bigint, code: Uint8Array): FoundAccount => {
  const isEmpty = balance === 0n && nonce === 0n && code.length === 0;
  return { account: isEmpty ? undefined : { balance, nonce, codeHash: keccak256Hex(code) }, code };
};

/** Returns the call that reads a slot. */
export const slotCall = (block: Hash, address: Address, slot: Hash): Call =>
  createCall("eth_getStorageAt", [address, slot, at(block)]);

/** Parses the result of `slotCall` into bytes without leading zeros. Throws if it has another form. */
export const parseSlot = (value: unknown): Uint8Array => {
  if (!isQuantity(value)) {
    throw invalid("storage value");
  }
  return stripZeros(parseData(word(value)));
};

/** Returns the call that reads a block by number. */
export const blockHashCall = (number: bigint): Call =>
  createCall("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);

/** Parses the block hash from the result of `blockHashCall`. Throws if it has another form, or is zero: the block exists. */
export const parseBlockHash = (value: unknown): Hash => {
  const hash = typeof value === "object" && value !== null ? Reflect.get(value, "hash") : undefined;
  if (!isHash(hash) || hash === ZERO_HASH) {
    throw invalid("block");
  }
  return hash;
};

/** A call object of a payload, as the client wrote it. Prefetch requests to nodes contain it unchanged. */
export type PlainCall = Readonly<Record<string, unknown>>;

/** Returns the call of geth's prestateTracer, which returns the accounts of a call with their values. */
export const traceCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall("debug_traceCall", [
    call,
    at(block),
    { tracer: "prestateTracer", ...(stateOverrides === undefined ? {} : { stateOverrides }) },
  ]);

/** Returns the call that reads the access list of a call. */
export const accessListCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall(
    "eth_createAccessList",
    stateOverrides === undefined ? [call, at(block)] : [call, at(block), stateOverrides],
  );

export interface TracedAccount extends FoundAccount {
  readonly address: Address;
  readonly slots: readonly (readonly [Hash, Uint8Array])[];
}

/**
 * Parses a result of prestateTracer: each account that the call touched, with its values before the call.
 * The tracer omits values of zero. Throws if the result has another form.
 */
export const parsePrestate = (value: unknown): readonly TracedAccount[] => {
  if (typeof value !== "object" || value === null) {
    throw invalid("prestate");
  }
  return Object.entries(value).map(([key, entry]) => {
    const address = key.toLowerCase();
    if (!isAddress(address) || typeof entry !== "object" || entry === null) {
      throw invalid("prestate");
    }
    const { balance = "0x0", nonce = 0, code = "0x", storage = {} } = entry as Record<string, unknown>;
    if (!isQuantity(balance) || typeof nonce !== "number" || !isData(code)) {
      throw invalid("prestate");
    }
    const slots = Object.entries(storage as object).map(([slot, value]) => [word(slot), parseSlot(value)] as const);
    return { address, slots, ...accountOf(BigInt(balance), BigInt(nonce), parseData(code)) };
  });
};

export interface Listed {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** Parses a result of `eth_createAccessList`. Addresses and slots are in lower case. Throws if it has another form. */
export const parseAccessList = (value: unknown): readonly Listed[] => {
  const list = typeof value === "object" && value !== null ? Reflect.get(value, "accessList") : undefined;
  if (!Array.isArray(list)) {
    throw invalid("access list");
  }
  return list.map((entry: unknown) => {
    const { address, storageKeys } = entry as Record<string, unknown>;
    if (!isAddress(address) || !Array.isArray(storageKeys)) {
      throw invalid("access list");
    }
    return { address: lower(address), slots: storageKeys.map((slot) => lower(String(slot) as Data)) };
  });
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
const word = (value: string): Hash => `0x${value.slice(2).toLowerCase().padStart(64, "0")}`;
