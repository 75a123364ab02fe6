import { isDeepStrictEqual } from "node:util";
import type { StateKeys, StateValues } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";
import { accountKeys, type StateKey, slotKey } from "../stateKey.ts";
import { StateValuesBuilder } from "../store/stateValuesBuilder.ts";
import type { TracedAccount } from "./prefetch.ts";
import type { FetchedValues } from "./stateFetcher.ts";

/** One part of a read is 500 slots, which one eth_call can read, or 100 calls of other values. */
const MAX_PART_WEIGHT = 500;
const SLOT_WEIGHT = 1;
const CALL_WEIGHT = 5;

/** An account or a slot, with the keys of its values. */
export interface Wanted {
  readonly address: Address;
  readonly slot: Hash | undefined;
  readonly keys: readonly StateKey[];
}

/** The values of an account or a slot, in the order of its keys. */
export interface Found extends Wanted {
  readonly values: readonly string[];
  /** Of an account. */
  readonly code: Uint8Array | undefined;
}

const wantedAccount = (address: Address): Wanted => ({ address, slot: undefined, keys: accountKeys(address) });

const wantedSlot = (address: Address, slot: Hash): Wanted => ({ address, slot, keys: [slotKey(address, slot)] });

/** Returns the accounts and slots of keys. */
export const wantedOf = ({ accounts, slots }: StateKeys): readonly Wanted[] => [
  ...accounts.map(wantedAccount),
  ...slots.map(([address, slot]) => wantedSlot(address, slot)),
];

/** Returns fetched values. Throws the error of the first one that has none. */
export const foundIn = ({ values, codes }: FetchedValues, wanted: Wanted): Found => {
  const own = wanted.keys.map((key) => {
    const value = values.get(key);
    if (typeof value !== "string") {
      throw value ?? new Error(`no value of ${key.field} was fetched`);
    }
    return value;
  });
  return { ...wanted, values: own, code: wanted.slot === undefined ? codes.get(own.at(-1) ?? "") : undefined };
};

/** Returns an account of a trace and its slots. */
export const foundInTrace = ({ address, account, code, slots }: TracedAccount): readonly Found[] => [
  { ...wantedAccount(address), values: account, code },
  ...slots.map(([slot, value]) => ({ ...wantedSlot(address, slot), values: [value], code: undefined })),
];

/** Returns values in the form that executions read. */
export const stateValuesOf = (found: readonly Found[]): StateValues => {
  const builder = new StateValuesBuilder();
  for (const { address, slot, values, code } of found) {
    const [first = "", nonce = "", codeHash = ""] = values;
    if (slot !== undefined) {
      builder.addSlot(address, slot, first);
      continue;
    }
    builder.addAccount(address, first, nonce, codeHash);
    if (code !== undefined) {
      builder.addCode(codeHash, code);
    }
  }
  return builder.values;
};

/** Divides a read into parts of MAX_PART_WEIGHT. */
export const partsOf = (wanted: readonly Wanted[]): readonly (readonly Wanted[])[] => {
  const parts: Wanted[][] = [];
  let room = 0;
  for (const each of wanted) {
    const weight = each.slot === undefined ? each.keys.length * CALL_WEIGHT : SLOT_WEIGHT;
    if (weight > room) {
      parts.push([]);
      room = MAX_PART_WEIGHT;
    }
    parts.at(-1)?.push(each);
    room -= weight;
  }
  return parts;
};

/** Returns the keys of accounts and slots. */
export const keysOf = (found: readonly Found[]): StateKeys => ({
  accounts: found.flatMap(({ address, slot }) => (slot === undefined ? [address] : [])),
  slots: found.flatMap(({ address, slot }) => (slot === undefined ? [] : [[address, slot] as const])),
  blockHashes: [],
});

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
