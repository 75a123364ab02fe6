import type { StateKeys, StateValues } from "../../core/stateReader.ts";
import type { Awaitable } from "../../jsonrpc/call.ts";
import { accountKeys, keyName, type StateKey, slotKey } from "../stateKey.ts";
import { StateValuesBuilder } from "../store/stateValuesBuilder.ts";

/** One part of a read is 500 slots, which one eth_call can read, or 100 calls of other values. */
const MAX_PART_WEIGHT = 500;
const SLOT_WEIGHT = 1;
const CALL_WEIGHT = 5;
const NO_CODE = new Uint8Array(0);

/** A value of the state after one block. */
export interface FoundValue {
  readonly key: StateKey;
  /** 64 digits of hex, of a code its hash. */
  readonly value: string;
  /** The bytes of a code. An empty one may be absent. */
  readonly code: Uint8Array | undefined;
}

/** The values after one block for which no node has to be asked. */
export interface KnownBlockState {
  /** As of a StateSource that takes these values. */
  readonly id: string;
  find(keys: readonly StateKey[]): Awaitable<readonly FoundValue[]>;
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
  const builder = new StateValuesBuilder();
  for (const { key, value, code } of found.values()) {
    if (key.slot !== undefined) {
      builder.addSlot(key.address, key.slot, value);
    } else if (key.field === "code") {
      const [balance, nonce] = accountKeys(key.address).map((each) => found.get(keyName(each))?.value);
      if (balance !== undefined && nonce !== undefined) {
        builder.addAccount(key.address, balance, nonce, value);
        builder.addCode(value, code ?? NO_CODE);
      }
    }
  }
  return builder.values;
};

/** Divides a read into parts of MAX_PART_WEIGHT. */
export const partsOf = (keys: readonly StateKey[]): readonly (readonly StateKey[])[] => {
  const parts: StateKey[][] = [];
  let room = 0;
  for (const key of keys) {
    const weight = key.field === "slot" ? SLOT_WEIGHT : CALL_WEIGHT;
    if (weight > room) {
      parts.push([]);
      room = MAX_PART_WEIGHT;
    }
    parts.at(-1)?.push(key);
    room -= weight;
  }
  return parts;
};
