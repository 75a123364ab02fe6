import type { AccountState } from "../core/stateReader.ts";
import { type Address, type Data, type Hash, isAddress, isData, isQuantity, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { stripZeros } from "./stateOverlay.ts";

/** A node answered something that is not what was asked for. */
const wrong = (what: string) => new Error(`a node gave no ${what}`);

export interface FoundAccount {
  readonly account: AccountState | undefined;
  readonly code: Uint8Array;
}

const at = (block: Hash) => ({ blockHash: block });

/** All that nodes tell about an account takes three questions. */
export const accountCalls = (block: Hash, address: Address): readonly Call[] => [
  createCall("eth_getBalance", [address, at(block)]),
  createCall("eth_getTransactionCount", [address, at(block)]),
  createCall("eth_getCode", [address, at(block)]),
];

export const parseAccount = ([balance, nonce, code]: readonly unknown[]): FoundAccount => {
  if (!isQuantity(balance) || !isQuantity(nonce) || !isData(code)) throw wrong("account");
  return foundAccount(BigInt(balance), BigInt(nonce), parseData(code));
};

const foundAccount = (balance: bigint, nonce: bigint, code: Uint8Array): FoundAccount => {
  const isNone = balance === 0n && nonce === 0n && code.length === 0;
  return { account: isNone ? undefined : { balance, nonce, codeHash: keccak256Hex(code) }, code };
};

export const slotCall = (block: Hash, address: Address, slot: Hash): Call =>
  createCall("eth_getStorageAt", [address, slot, at(block)]);

export const parseSlot = (value: unknown): Uint8Array => {
  if (!isQuantity(value)) throw wrong("storage value");
  return stripZeros(parseData(word(value)));
};

export const blockHashCall = (number: bigint): Call =>
  createCall("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);

export const parseBlockHash = (value: unknown): Hash => {
  const hash = typeof value === "object" && value !== null ? Reflect.get(value, "hash") : undefined;
  if (!isData(hash)) throw wrong("block");
  return hash;
};

/** The call objects of a payload, as the caller wrote them: nodes are asked ahead with them. */
export type PlainCall = Readonly<Record<string, unknown>>;

export const traceCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall("debug_traceCall", [
    call,
    at(block),
    { tracer: "prestateTracer", ...(stateOverrides === undefined ? {} : { stateOverrides }) },
  ]);

export const accessListCall = (block: Hash, call: PlainCall, stateOverrides: unknown): Call =>
  createCall(
    "eth_createAccessList",
    stateOverrides === undefined ? [call, at(block)] : [call, at(block), stateOverrides],
  );

export interface TracedAccount extends FoundAccount {
  readonly address: Address;
  readonly slots: readonly (readonly [Hash, Uint8Array])[];
}

/** prestateTracer's answer: each account that the call touched, as it was before. What is zero is left out. */
export const parsePrestate = (value: unknown): readonly TracedAccount[] => {
  if (typeof value !== "object" || value === null) throw wrong("prestate");
  return Object.entries(value).map(([key, entry]) => {
    const address = key.toLowerCase();
    if (!isAddress(address) || typeof entry !== "object" || entry === null) throw wrong("prestate");
    const { balance = "0x0", nonce = 0, code = "0x", storage = {} } = entry as Record<string, unknown>;
    if (!isQuantity(balance) || typeof nonce !== "number" || !isData(code)) throw wrong("prestate");
    const slots = Object.entries(storage as object).map(([slot, word_]) => [word(slot), parseSlot(word_)] as const);
    return { address, slots, ...foundAccount(BigInt(balance), BigInt(nonce), parseData(code)) };
  });
};

export interface Listed {
  readonly address: Address;
  readonly slots: readonly Hash[];
}

export const parseAccessList = (value: unknown): readonly Listed[] => {
  const list = typeof value === "object" && value !== null ? Reflect.get(value, "accessList") : undefined;
  if (!Array.isArray(list)) throw wrong("access list");
  return list.map((entry: unknown) => {
    const { address, storageKeys } = entry as Record<string, unknown>;
    if (!isAddress(address) || !Array.isArray(storageKeys)) throw wrong("access list");
    return { address: lower(address), slots: storageKeys.map((slot) => lower(String(slot) as Data)) };
  });
};

const lower = (value: Data): Data => `0x${value.slice(2).toLowerCase()}`;
const word = (value: string): Hash => `0x${value.slice(2).toLowerCase().padStart(64, "0")}`;
