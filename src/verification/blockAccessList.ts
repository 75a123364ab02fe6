import { type Address, formatWord, type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { encodeBytes, encodeList, encodeNumber, stripZeros } from "../ethereum/rlp.ts";
import type { Fields } from "../json/jsonBytes.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, listOf, numberOf } from "./jsonFields.ts";

/** One change of a block access list. `index` is 0 before the first transaction, and i + 1 for transaction i. */
export interface IndexedChange<Value> {
  readonly index: bigint;
  readonly value: Value;
}

interface ListedSlot {
  readonly slot: Hash;
  readonly changes: readonly IndexedChange<bigint>[];
}

/** One account of a block access list (EIP-7928). */
export interface AccountAccess {
  readonly address: Address;
  readonly storageChanges: readonly ListedSlot[];
  readonly storageReads: readonly Hash[];
  readonly balanceChanges: readonly IndexedChange<bigint>[];
  readonly nonceChanges: readonly IndexedChange<bigint>[];
  readonly codeChanges: readonly IndexedChange<Uint8Array>[];
}

const items = (value: unknown): readonly unknown[] => (isAbsent(value) ? [] : listOf(value));
const wordOf = (value: unknown): Hash => formatWord(numberOf(value));

/** Parses a change. The execution API names its fields `index` and `value` or `code`. Clients also use longer names. */
const changeOf =
  <Value>(longName: string, read: (value: unknown) => Value) =>
  (item: unknown): IndexedChange<Value> => {
    const fields: Fields = fieldsOf(item);
    return {
      index: numberOf(fields.index ?? fields.blockAccessIndex),
      value: read(fields.value ?? fields.code ?? fields[longName]),
    };
  };

const storageChange = changeOf("postValue", numberOf);
const balanceChange = changeOf("postBalance", numberOf);
const nonceChange = changeOf("postNonce", numberOf);
const codeChange = changeOf("newCode", (value) => parseData(dataOf(value)));

const parseSlot = (item: unknown): ListedSlot => {
  const { key, slot, changes, slotChanges } = fieldsOf(item);
  return { slot: wordOf(key ?? slot), changes: items(changes ?? slotChanges).map(storageChange) };
};

/** Parses the result of eth_getBlockAccessList. Throws MalformedField. */
export const parseBlockAccessList = (value: unknown): readonly AccountAccess[] =>
  listOf(value).map((item) => {
    const account = fieldsOf(item);
    return {
      address: `0x${bytesOf(account.address, 20).slice(2).toLowerCase()}`,
      storageChanges: items(account.storageChanges).map(parseSlot),
      storageReads: items(account.storageReads).map(wordOf),
      balanceChanges: items(account.balanceChanges).map(balanceChange),
      nonceChanges: items(account.nonceChanges).map(nonceChange),
      codeChanges: items(account.codeChanges).map(codeChange),
    };
  });

const encodeChanges = <Value>(
  changes: readonly IndexedChange<Value>[],
  encode: (value: Value) => Uint8Array,
): Uint8Array => encodeList(changes.map(({ index, value }) => encodeList([encodeNumber(index), encode(value)])));

/** Slots and values are numbers: they have no leading zeros. */
const encodeSlot = (slot: Hash): Uint8Array => encodeBytes(stripZeros(parseData(slot)));

const encodeAccount = (account: AccountAccess): Uint8Array =>
  encodeList([
    encodeBytes(parseData(account.address)),
    encodeList(
      account.storageChanges.map(({ slot, changes }) =>
        encodeList([encodeSlot(slot), encodeChanges(changes, encodeNumber)]),
      ),
    ),
    encodeList(account.storageReads.map(encodeSlot)),
    encodeChanges(account.balanceChanges, encodeNumber),
    encodeChanges(account.nonceChanges, encodeNumber),
    encodeChanges(account.codeChanges, encodeBytes),
  ]);

/** Returns the hash of a block access list, which is the header's `blockAccessListHash` (EIP-7928). */
export const hashBlockAccessList = (list: readonly AccountAccess[]): Hash =>
  keccak256Hex(encodeList(list.map(encodeAccount)));
