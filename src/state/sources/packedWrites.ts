import { type Address, formatData, type Hash, writeData } from "../../ethereum/hex.ts";
import { numberBytes } from "../../ethereum/rlp.ts";
import type { AccountWrites, Written } from "../writeSet.ts";
import type { MutableWrites } from "./mutableWrites.ts";

/** The number of bytes before a value. This number stands for "unknown". */
const UNKNOWN = 0xffffffff;

const BALANCE = 1;
const NONCE = 2;
const CODE = 4;
const CODE_HASH = 8;
const OTHERS_CLEARED = 16;
const OTHERS_UNKNOWN = 32;

const ADDRESS_BYTES = 20;
const HASH_BYTES = 32;
const LENGTH_BYTES = 4;

const flagsOf = ({ balance, nonce, code, codeHash, otherSlots }: AccountWrites): number =>
  (balance === undefined ? 0 : BALANCE) |
  (nonce === undefined ? 0 : NONCE) |
  (code === undefined ? 0 : CODE) |
  (codeHash === undefined ? 0 : CODE_HASH) |
  (otherSlots === "cleared" ? OTHERS_CLEARED : 0) |
  (otherSlots === "unknown" ? OTHERS_UNKNOWN : 0);

const bytesOf = (value: Written<bigint>): Written<Uint8Array> => (value === "unknown" ? value : numberBytes(value));

class PackWriter {
  #bytes = Buffer.allocUnsafe(4_096);
  #at = 0;

  /** A copy, because a message to another thread has the whole memory of an array. */
  get packed(): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(0, this.#at));
  }

  number(value: number): void {
    this.#reserve(LENGTH_BYTES);
    this.#at = this.#bytes.writeUInt32LE(value, this.#at);
  }

  hex(value: Address | Hash): void {
    this.#reserve(HASH_BYTES);
    this.#at = writeData(value, this.#bytes, this.#at);
  }

  value(value: Written<Uint8Array>): void {
    if (value === "unknown") {
      this.number(UNKNOWN);
      return;
    }
    this.number(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) {
      return;
    }
    const larger = Buffer.allocUnsafe(2 * (this.#at + bytes));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }
}

/** Packs writes into one array: one array is sent to another thread faster than thousands of small ones. */
export const packWrites = (accounts: ReadonlyMap<Address, AccountWrites>): Uint8Array => {
  const into = new PackWriter();
  into.number(accounts.size);
  for (const [address, writes] of accounts) {
    const { balance, nonce, code, codeHash, slots } = writes;
    into.hex(address);
    into.number(flagsOf(writes));
    for (const value of [balance, nonce]) {
      if (value !== undefined) {
        into.value(bytesOf(value));
      }
    }
    if (code !== undefined) {
      into.value(code);
    }
    if (codeHash !== undefined) {
      into.hex(codeHash);
    }
    into.number(slots.size);
    for (const [slot, value] of slots) {
      into.hex(slot);
      into.value(value);
    }
  }
  return into.packed;
};

class PackReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  }

  number(): number {
    this.#at += LENGTH_BYTES;
    return this.#bytes.readUInt32LE(this.#at - LENGTH_BYTES);
  }

  hex(length: number): Address | Hash {
    return formatData(this.#take(length));
  }

  /** The value shares the memory of the packed array. */
  value(): Written<Uint8Array> {
    const length = this.number();
    return length === UNKNOWN ? "unknown" : this.#take(length);
  }

  amount(): Written<bigint> {
    const value = this.value();
    return value === "unknown" ? value : value.length === 0 ? 0n : BigInt(formatData(value));
  }

  #take(length: number): Uint8Array {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

/** Yields after each slot. */
const unpackAccount = function* (from: PackReader): Generator<void, AccountWrites> {
  const flags = from.number();
  const writes: MutableWrites = { slots: new Map() };
  if (flags & BALANCE) {
    writes.balance = from.amount();
  }
  if (flags & NONCE) {
    writes.nonce = from.amount();
  }
  if (flags & CODE) {
    writes.code = from.value();
  }
  if (flags & CODE_HASH) {
    writes.codeHash = from.hex(HASH_BYTES);
  }
  if (flags & (OTHERS_CLEARED | OTHERS_UNKNOWN)) {
    writes.otherSlots = flags & OTHERS_CLEARED ? "cleared" : "unknown";
  }
  for (let left = from.number(); left > 0; left--) {
    writes.slots.set(from.hex(HASH_BYTES), from.value());
    yield;
  }
  return writes;
};

/** Returns the writes that `packWrites` packed. Their values share the memory of `packed`. A caller runs the steps in slices. */
export const unpackWrites = function* (packed: Uint8Array): Generator<void, ReadonlyMap<Address, AccountWrites>> {
  const from = new PackReader(packed);
  const accounts = new Map<Address, AccountWrites>();
  for (let left = from.number(); left > 0; left--) {
    accounts.set(from.hex(ADDRESS_BYTES), yield* unpackAccount(from));
    yield;
  }
  return accounts;
};
