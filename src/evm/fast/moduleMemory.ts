import type { Address, Data, Hash } from "../../ethereum/hex.ts";
import { NotExecutableError } from "../executionErrors.ts";

const NOTHING = new Uint8Array(0);
const LIMB_BITS = 64n;
const ADDRESS_BYTES = 20;
const WORD_BYTES = 32;

/** Reads and writes the memory of a WebAssembly instance. Words are big-endian, other numbers little-endian. */
export class ModuleMemory {
  readonly #memory: WebAssembly.Memory;
  #bytes: Buffer;
  #view: DataView;

  constructor(memory: WebAssembly.Memory) {
    this.#memory = memory;
    this.#bytes = Buffer.from(memory.buffer);
    this.#view = new DataView(memory.buffer);
  }

  get byteLength(): number {
    return this.#memory.buffer.byteLength;
  }

  /** Must be called after each call into the module: growth of the memory detaches the old buffer. */
  refresh(): void {
    // A detached buffer has no bytes.
    if (this.#bytes.length === 0) {
      this.#bytes = Buffer.from(this.#memory.buffer);
      this.#view = new DataView(this.#memory.buffer);
    }
  }

  /** Returns a copy. */
  bytes(at: number, length: number): Uint8Array {
    return length === 0 ? NOTHING : new Uint8Array(this.#bytes.subarray(at, at + length));
  }

  setBytes(at: number, bytes: Uint8Array): void {
    this.#bytes.set(bytes, at);
  }

  data(at: number, length: number): Data {
    return `0x${this.#bytes.toString("hex", at, at + length)}`;
  }

  /** `value` has the digits of `length` bytes. */
  setData(at: number, value: Data, length: number): void {
    this.#bytes.write(value.slice(2), at, length, "hex");
  }

  address(at: number): Address {
    return this.data(at, ADDRESS_BYTES);
  }

  setAddress(at: number, address: Address): void {
    this.setData(at, address, ADDRESS_BYTES);
  }

  hash(at: number): Hash {
    return this.data(at, WORD_BYTES);
  }

  setHash(at: number, hash: Hash): void {
    this.setData(at, hash, WORD_BYTES);
  }

  text(at: number, length: number): string {
    return this.#bytes.toString("utf8", at, at + length);
  }

  uint32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  setUint32(at: number, value: number): void {
    this.#view.setUint32(at, value, true);
  }

  uint64(at: number): bigint {
    return this.#view.getBigUint64(at, true);
  }

  setUint64(at: number, value: bigint): void {
    this.#view.setBigUint64(at, value, true);
  }

  setUint128(at: number, value: bigint): void {
    this.#view.setBigUint64(at, value, true);
    this.#view.setBigUint64(at + 8, value >> LIMB_BITS, true);
  }

  word(at: number): bigint {
    const view = this.#view;
    const high = view.getBigUint64(at);
    const low = (view.getBigUint64(at + 16) << LIMB_BITS) | view.getBigUint64(at + 24);
    const second = view.getBigUint64(at + 8);
    return high === 0n && second === 0n ? low : (high << 192n) | (second << 128n) | low;
  }

  setWord(at: number, value: bigint): void {
    const view = this.#view;
    view.setBigUint64(at, value >> 192n);
    view.setBigUint64(at + 8, value >> 128n);
    view.setBigUint64(at + 16, value >> LIMB_BITS);
    view.setBigUint64(at + 24, value);
  }

  /** Writes a number without leading zero bytes as a word. */
  setShortWord(at: number, value: Uint8Array): void {
    this.#bytes.fill(0, at, at + WORD_BYTES);
    this.#bytes.set(value, at + WORD_BYTES - value.length);
  }

  /** Returns a word's bytes without leading zeros. */
  shortWord(at: number): Uint8Array {
    const end = at + WORD_BYTES;
    let start = at;
    while (start < end && this.#bytes[start] === 0) {
      start++;
    }
    return this.bytes(start, end - start);
  }
}

/** Returns a number that the WebAssembly module can represent. Throws NotExecutableError for a larger one, which geth allows. */
export const moduleNumber = (value: bigint, bits: 64 | 128, name: string): bigint => {
  if (BigInt.asUintN(bits, value) !== value) {
    throw new NotExecutableError(`the ${name} has more than ${bits} bits`);
  }
  return value;
};
