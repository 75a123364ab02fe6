import { type Address, formatData, formatWord, parseData, writeData } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";
import { numberBytes, stripZeros } from "../../ethereum/rlp.ts";
import { MalformedField } from "../../verification/jsonFields.ts";
import {
  type AccountWrites,
  type BlockWrites,
  type MutableAccounts,
  type MutableWrites,
  type Written,
  writesOf,
} from "../writeSet.ts";
import { keyAt, type TableKey, VALUE_BYTES } from "./keyEncoder.ts";
import { RowWriter, readRows, type ValueRow } from "./packedRows.ts";

const NOTHING = new Uint8Array(0);

/** Adds the row of what a block wrote. A node can claim a value that is too large. */
const addWrite = (writer: RowWriter, { address, field, slot }: TableKey, value: Written<Uint8Array>): void => {
  const place = writer.addValue(field, value === "unknown");
  writeData(address, place.bytes, place.address);
  if (slot !== undefined && place.slot !== undefined) {
    writeData(slot, place.bytes, place.slot);
  }
  if (value !== "unknown") {
    if (value.length > VALUE_BYTES) {
      throw new MalformedField("expected a value of at most 32 bytes");
    }
    place.bytes.set(value, place.value + VALUE_BYTES - value.length);
  }
};

const bytesOf = (value: Written<bigint> | undefined): Written<Uint8Array> | undefined =>
  typeof value === "bigint" ? numberBytes(value) : value;

/** Returns the hash of the code after the block, which is zero in rows if the code is empty. */
const codeHashBytes = ({ code, codeHash }: AccountWrites): Written<Uint8Array> | undefined => {
  const hash = code instanceof Uint8Array ? (codeHash ?? keccak256Hex(code)) : codeHash;
  return hash === undefined ? code : hash === EMPTY_CODE_HASH ? NOTHING : parseData(hash);
};

const addAccount = (writer: RowWriter, address: Address, writes: AccountWrites): void => {
  const { balance, nonce, code, otherSlots, slots } = writes;
  const values = [
    ["storage", otherSlots === "cleared" ? NOTHING : otherSlots],
    ["balance", bytesOf(balance)],
    ["nonce", bytesOf(nonce)],
    ["code", code && codeHashBytes(writes)],
  ] as const;
  for (const [field, value] of values) {
    if (value !== undefined) {
      addWrite(writer, { address, field, slot: undefined }, value);
    }
  }
  if (code instanceof Uint8Array && code.length > 0) {
    writer.addBytes("bytes", code);
  }
  for (const [slot, value] of slots) {
    addWrite(writer, { address, field: "slot", slot }, value);
  }
};

/** Packs the writes of a block in rows. A code follows its hash. One array is sent to another thread faster than thousands. */
export const packWrites = (accounts: BlockWrites): Uint8Array => {
  const writer = new RowWriter();
  for (const [address, writes] of accounts) {
    addAccount(writer, address, writes);
  }
  return writer.finish();
};

const codeOf = (value: Written<Uint8Array>): Pick<AccountWrites, "code" | "codeHash"> => {
  if (value === "unknown") {
    return { code: value };
  }
  return value.length === 0
    ? { code: NOTHING, codeHash: EMPTY_CODE_HASH }
    : { code: "unknown", codeHash: formatWord(numberOf(value)) };
};

const numberOf = (value: Uint8Array): bigint => (value.length === 0 ? 0n : BigInt(formatData(value)));

const addRow = (accounts: MutableAccounts, { kind, isEnded, place }: ValueRow): MutableWrites => {
  const { address, slot } = keyAt(kind, place);
  const writes = writesOf(accounts, address);
  const value = isEnded ? "unknown" : stripZeros(place.bytes.subarray(place.value, place.value + VALUE_BYTES));
  if (slot !== undefined) {
    writes.slots.set(slot, value);
  } else if (kind === "storage") {
    writes.otherSlots = isEnded ? "unknown" : "cleared";
  } else if (kind === "code") {
    Object.assign(writes, codeOf(value));
  } else if (kind !== "slot") {
    writes[kind] = value === "unknown" ? value : numberOf(value);
  }
  return writes;
};

/** Returns the writes that `packWrites` packed. Throws DamagedRows. */
export const unpackWrites = (packed: Uint8Array): BlockWrites => {
  const accounts: MutableAccounts = new Map();
  let last: MutableWrites = { slots: new Map() };
  for (const row of readRows(packed)) {
    if (row.kind === "bytes") {
      last.code = row.content;
    } else if (row.kind !== "call") {
      last = addRow(accounts, row);
    }
  }
  return accounts;
};
