import { type Address, formatData, type Hash } from "../../ethereum/hex.ts";
import { asBuffer } from "../../json/jsonBytes.ts";
import { LENGTH_BYTES, UNKNOWN, WRITTEN_PARTS } from "../store/packedWrites.ts";
import type { AccountWrites, BlockWrites, Written } from "../writeSet.ts";
import type { MutableWrites } from "./mutableWrites.ts";

const ADDRESS_BYTES = 20;
const HASH_BYTES = 32;

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#bytes = asBuffer(packed);
  }

  number(): number {
    return this.#take(LENGTH_BYTES).readUInt32LE();
  }

  hex(length: number): Address | Hash {
    return formatData(this.#take(length));
  }

  value(): Written<Uint8Array> {
    const length = this.number();
    return length === UNKNOWN ? "unknown" : this.#take(length);
  }

  amount(): Written<bigint> {
    const value = this.value();
    return value === "unknown" ? value : value.length === 0 ? 0n : BigInt(formatData(value));
  }

  #take(length: number): Buffer {
    this.#at += length;
    if (this.#at > this.#bytes.length) {
      throw new RangeError("packed writes end early");
    }
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

const unpackAccount = (from: Reader): AccountWrites => {
  const parts = from.number();
  const writes: MutableWrites = { slots: new Map() };
  if (parts & WRITTEN_PARTS.balance) {
    writes.balance = from.amount();
  }
  if (parts & WRITTEN_PARTS.nonce) {
    writes.nonce = from.amount();
  }
  if (parts & WRITTEN_PARTS.code) {
    writes.code = from.value();
  }
  if (parts & WRITTEN_PARTS.codeHash) {
    writes.codeHash = from.hex(HASH_BYTES);
  }
  if (parts & (WRITTEN_PARTS.othersCleared | WRITTEN_PARTS.othersUnknown)) {
    writes.otherSlots = parts & WRITTEN_PARTS.othersCleared ? "cleared" : "unknown";
  }
  for (let left = from.number(); left > 0; left--) {
    writes.slots.set(from.hex(HASH_BYTES), from.value());
  }
  return writes;
};

/** Returns the writes that `packWrites` packed. Throws RangeError if the bytes end early. */
export const unpackWrites = (packed: Uint8Array): BlockWrites => {
  const from = new Reader(packed);
  const accounts = new Map<Address, AccountWrites>();
  for (let left = from.number(); left > 0; left--) {
    accounts.set(from.hex(ADDRESS_BYTES), unpackAccount(from));
  }
  return accounts;
};
