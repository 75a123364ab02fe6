import type { AccountState, StateKeys, StateValues } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { accountKeys, keyName, type StateKey, slotKey, ZERO_VALUE } from "../stateKey.ts";

/** One part of a read is 500 slots, which one eth_call can read, or 100 calls of other values. */
const MAX_PART_WEIGHT = 500;
const SLOT_WEIGHT = 1;
const CALL_WEIGHT = 5;

/** A value of the state after one block. */
export interface FoundValue {
  readonly key: StateKey;
  /** 64 digits of hex, of a code its hash. */
  readonly value: string;
  /** The bytes of a code. An empty one may be absent. */
  readonly code: Uint8Array | undefined;
}

/** Counts accounts and slots. */
export const countOf = (keys: readonly StateKey[]): number =>
  keys.filter(({ field }) => field === "slot" || field === "code").length;

/** Returns the keys of single values. */
export const singleKeys = ({ accounts, slots }: StateKeys): readonly StateKey[] => [
  ...accounts.flatMap(accountKeys),
  ...slots.map(([address, slot]) => slotKey(address, slot)),
];

/** Returns values by the names of their keys in the form that executions read. An account that lacks a value is left out. */
export const stateValuesOf = (found: ReadonlyMap<string, FoundValue>): StateValues => {
  const accounts: StateValues["accounts"][number][] = [];
  const slots: StateValues["slots"][number][] = [];
  const codes = new Map<Hash, Uint8Array>();
  for (const { key, value, code } of found.values()) {
    if (key.slot !== undefined) {
      slots.push([key.address, key.slot, bytesOf(value)]);
    } else if (key.field === "code") {
      const [balance, nonce] = accountKeys(key.address).map((each) => found.get(keyName(each))?.value);
      if (balance !== undefined && nonce !== undefined) {
        accounts.push([key.address, accountOf(balance, nonce, value)]);
        if (code !== undefined && code.length > 0) {
          codes.set(`0x${value}`, code);
        }
      }
    }
  }
  return { accounts, codes: [...codes], slots, blockHashes: [] };
};

/** An empty account counts as one that does not exist (EIP-161). */
const accountOf = (balance: string, nonce: string, codeHash: string): AccountState | undefined => {
  const isEmpty = [balance, nonce, codeHash].every((value) => value === ZERO_VALUE);
  const account = { balance: BigInt(`0x${balance}`), nonce: BigInt(`0x${nonce}`) };
  return isEmpty ? undefined : { ...account, codeHash: codeHash === ZERO_VALUE ? EMPTY_CODE_HASH : `0x${codeHash}` };
};

const NOTHING = new Uint8Array(0);
const DIGIT_ZERO = 48;

/** Returns the bytes of 64 digits without leading zeros. */
const bytesOf = (digits: string): Uint8Array => {
  let start = 0;
  while (start < digits.length && digits.charCodeAt(start) === DIGIT_ZERO) {
    start++;
  }
  // The bytes of a Buffer would be a part of a larger one, which a message to a thread copies as a whole.
  return start === digits.length ? NOTHING : new Uint8Array(Buffer.from(digits.slice(start - (start % 2)), "hex"));
};

const weightOf = ({ field }: StateKey): number => (field === "slot" ? SLOT_WEIGHT : CALL_WEIGHT);

/** Divides a read into parts of MAX_PART_WEIGHT. Slots come last, so that few calls read them. */
export const partsOf = (keys: readonly StateKey[]): readonly (readonly StateKey[])[] => {
  const parts: StateKey[][] = [];
  let room = 0;
  for (const key of keys.toSorted((one, other) => weightOf(other) - weightOf(one))) {
    if (weightOf(key) > room) {
      parts.push([]);
      room = MAX_PART_WEIGHT;
    }
    parts.at(-1)?.push(key);
    room -= weightOf(key);
  }
  return parts;
};
