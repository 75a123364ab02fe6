import { type Address, formatData } from "../../ethereum/hex.ts";
import { PackReader, WRITTEN_PARTS } from "../store/packedWrites.ts";
import type { AccountWrites, BlockWrites, Written } from "../writeSet.ts";
import type { MutableWrites } from "./mutableWrites.ts";

const known = (value: Uint8Array | undefined): Written<Uint8Array> => value ?? "unknown";

const amountOf = (value: Uint8Array | undefined): Written<bigint> => {
  if (value === undefined) {
    return "unknown";
  }
  return value.length === 0 ? 0n : BigInt(formatData(value));
};

const unpackAccount = (from: PackReader): AccountWrites => {
  const parts = from.number();
  const writes: MutableWrites = { slots: new Map() };
  if (parts & WRITTEN_PARTS.balance) {
    writes.balance = amountOf(from.bytes());
  }
  if (parts & WRITTEN_PARTS.nonce) {
    writes.nonce = amountOf(from.bytes());
  }
  if (parts & WRITTEN_PARTS.code) {
    writes.code = known(from.bytes());
  }
  if (parts & WRITTEN_PARTS.codeHash) {
    writes.codeHash = from.hash();
  }
  if (parts & (WRITTEN_PARTS.othersCleared | WRITTEN_PARTS.othersUnknown)) {
    writes.otherSlots = parts & WRITTEN_PARTS.othersCleared ? "cleared" : "unknown";
  }
  for (let left = from.number(); left > 0; left--) {
    writes.slots.set(from.hash(), known(from.bytes()));
  }
  return writes;
};

/** Returns the writes that `packWrites` packed. Throws RangeError if the bytes end early. */
export const unpackWrites = (packed: Uint8Array): BlockWrites => {
  const from = new PackReader(packed);
  const accounts = new Map<Address, AccountWrites>();
  for (let left = from.number(); left > 0; left--) {
    accounts.set(from.address(), unpackAccount(from));
  }
  return accounts;
};
