import type { Address, Hash } from "../ethereum/hex.ts";
import { isData, isQuantity, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import type { StateField, StateKey } from "./stateKey.ts";

const DIGITS = 64;

const METHODS: Readonly<Record<StateField, string>> = {
  balance: "eth_getBalance",
  nonce: "eth_getTransactionCount",
  code: "eth_getCode",
  slot: "eth_getStorageAt",
};

const FIELDS = new Map<string, StateField>([
  [METHODS.balance, "balance"],
  [METHODS.nonce, "nonce"],
  [METHODS.code, "code"],
  [METHODS.slot, "slot"],
]);

/** Returns the method that reads the value. */
export const methodOf = ({ field }: StateKey): string => METHODS[field];

/** Returns the value that a call of `singleCall` reads. Undefined: it is another call. */
export const keyOfCall = ({ method, params: [address, slot] }: Call): StateKey | undefined => {
  const field = FIELDS.get(method);
  return field && { field, address: address as Address, slot: field === "slot" ? (slot as Hash) : undefined };
};

/** Creates the call that reads one value after a block. */
export const singleCall = (key: StateKey, block: Hash): Call =>
  createCall(methodOf(key), [key.address, ...(key.slot === undefined ? [] : [key.slot]), { blockHash: block }]);

/** Parses a result: 64 digits of hex, of a code its hash, and zero for no code. Undefined: it has another form. */
export const parseSingle = ({ field }: StateKey, result: unknown): string | undefined => {
  if (field === "code") {
    return isData(result) ? hashDigits(parseData(result)) : undefined;
  }
  const digits = isQuantity(result) ? result.slice(2).toLowerCase().padStart(DIGITS, "0") : undefined;
  return digits?.length === DIGITS ? digits : undefined;
};

const hashDigits = (code: Uint8Array): string => (code.length === 0 ? "0".repeat(DIGITS) : keccak256Hex(code).slice(2));
