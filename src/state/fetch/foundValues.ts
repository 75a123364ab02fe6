import { isDeepStrictEqual } from "node:util";
import type { StateKeys, StateValues } from "../../core/stateReader.ts";
import { accountKeys, keyName, type StateKey, slotKey } from "../stateKey.ts";
import { StateValuesBuilder } from "../store/stateValuesBuilder.ts";
import { ZERO_VALUE } from "../store/writtenValues.ts";

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

/** Values by the names of their keys. An account has all three. */
export type FoundValues = ReadonlyMap<string, FoundValue>;

/** Returns the keys of single values. */
export const singleKeys = ({ accounts, slots }: StateKeys): readonly StateKey[] => [
  ...accounts.flatMap(accountKeys),
  ...slots.map(([address, slot]) => slotKey(address, slot)),
];

/** Returns the keys of accounts and slots. */
export const stateKeysOf = (found: Iterable<FoundValue>): StateKeys => {
  const keys = Array.from(found, ({ key }) => key);
  return {
    accounts: keys.flatMap(({ field, address }) => (field === "code" ? [address] : [])),
    slots: keys.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
    blockHashes: [],
  };
};

/** Returns values in the form that executions read. */
export const stateValuesOf = (found: FoundValues): StateValues => {
  const builder = new StateValuesBuilder();
  for (const { key, value, code } of found.values()) {
    if (key.slot !== undefined) {
      builder.addSlot(key.address, key.slot, value);
    } else if (key.field === "code") {
      const values = accountKeys(key.address).map((each) => found.get(keyName(each))?.value);
      const [balance = ZERO_VALUE, nonce = ZERO_VALUE] = values;
      builder.addAccount(key.address, balance, nonce, value);
      if (code !== undefined) {
        builder.addCode(value, code);
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

/** Whether a traced value differs from a known one. */
export const contradicts = (known: StateValues, traced: StateValues): boolean => {
  const accounts = new Map(known.accounts);
  const slots = new Map(known.slots.map(([address, slot, value]) => [address + slot, value]));
  const differs = <Value>(values: ReadonlyMap<string, Value>, key: string, value: Value): boolean =>
    values.has(key) && !isDeepStrictEqual(values.get(key), value);
  return (
    traced.accounts.some(([address, account]) => differs(accounts, address, account)) ||
    traced.slots.some(([address, slot, value]) => differs(slots, address + slot, value))
  );
};
