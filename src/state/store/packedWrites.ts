import { type Address, type Hash, writeData } from "../../ethereum/hex.ts";
import { numberBytes } from "../../ethereum/rlp.ts";
import type { AccountWrites, BlockWrites, Written } from "../writeSet.ts";

/** The number of bytes before a value. This number stands for "unknown". */
const UNKNOWN = 0xffffffff;
const LENGTH_BYTES = 4;
const ADDRESS_BYTES = 20;
const HASH_BYTES = 32;
/** Of a value in hex. */
export const VALUE_DIGITS = 64;

/** What an account has of AccountWrites. The hash of a code follows only a code. */
export const WRITTEN_PARTS = {
  balance: 1,
  nonce: 2,
  code: 4,
  codeHash: 8,
  othersCleared: 16,
  othersUnknown: 32,
} as const;

const partsOf = ({ balance, nonce, code, codeHash, otherSlots }: AccountWrites): number =>
  (balance === undefined ? 0 : WRITTEN_PARTS.balance) |
  (nonce === undefined ? 0 : WRITTEN_PARTS.nonce) |
  (code === undefined ? 0 : WRITTEN_PARTS.code) |
  (code === undefined || codeHash === undefined ? 0 : WRITTEN_PARTS.codeHash) |
  (otherSlots === "cleared" ? WRITTEN_PARTS.othersCleared : 0) |
  (otherSlots === "unknown" ? WRITTEN_PARTS.othersUnknown : 0);

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

/** Reads what PackWriter has written. Each method throws RangeError if the bytes end early. */
export class PackReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  }

  number(): number {
    return this.#bytes.readUInt32LE(this.#skip(LENGTH_BYTES));
  }

  address(): Address {
    return `0x${this.#digits(ADDRESS_BYTES)}`;
  }

  hash(): Hash {
    return `0x${this.#digits(HASH_BYTES)}`;
  }

  /** Returns a value in 64 digits of hex. Undefined: it is not known. */
  value(): string | undefined {
    const length = this.number();
    return length === UNKNOWN ? undefined : this.#digits(length).padStart(VALUE_DIGITS, "0");
  }

  /** Returns bytes that share the memory of the packed ones. Undefined: they are not known. */
  bytes(): Uint8Array | undefined {
    const length = this.number();
    return length === UNKNOWN ? undefined : this.#bytes.subarray(this.#skip(length), this.#at);
  }

  #digits(length: number): string {
    const start = this.#skip(length);
    return this.#bytes.toString("hex", start, this.#at);
  }

  /** Returns the position before the skipped bytes. */
  #skip(length: number): number {
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) {
      throw new RangeError("packed writes end early");
    }
    return start;
  }
}

/**
 * Packs the writes of a block, which `writtenValues` and `unpackWrites` read. One array is sent to another thread faster than thousands of small ones.
 */
export const packWrites = (accounts: BlockWrites): Uint8Array => {
  const into = new PackWriter();
  into.number(accounts.size);
  for (const [address, writes] of accounts) {
    const { balance, nonce, code, codeHash, slots } = writes;
    into.hex(address);
    into.number(partsOf(writes));
    for (const value of [balance, nonce]) {
      if (value !== undefined) {
        into.value(bytesOf(value));
      }
    }
    if (code !== undefined) {
      into.value(code);
      if (codeHash !== undefined) {
        into.hex(codeHash);
      }
    }
    into.number(slots.size);
    for (const [slot, value] of slots) {
      into.hex(slot);
      into.value(value);
    }
  }
  return into.packed;
};
