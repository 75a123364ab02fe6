import { randomInt } from "node:crypto";
import type { Address } from "../../ethereum/hex.ts";
import type { StateField, StateKey } from "../stateKey.ts";

/** `storage` names all slots of an account at once: it has an entry in a block that cleared them. */
export type TableField = StateField | "storage";

export interface TableKey extends Omit<StateKey, "field"> {
  readonly field: TableField;
}

/** 20 bytes of address, 4 of the field, 32 of the slot. */
export const KEY_WORDS = 14;
export const ADDRESS_WORDS = 5;
/** Position of the field in a key. Its higher bits are the version of a value at a block that is not followed, else zero. */
export const FIELD_WORD = 5;
const FIELD_BITS = 3;
export const SLOT_START = 24;
export const ADDRESS_BYTES = 20;
export const SLOT_BYTES = 32;
export const VALUE_BYTES = 32;

export const FIELD_CODES: Readonly<Record<TableField, number>> = { slot: 0, balance: 1, nonce: 2, code: 3, storage: 4 };

const FIELDS: readonly TableField[] = ["slot", "balance", "nonce", "code", "storage"];

/** Undefined: the value is of a block that is not followed. */
export const fieldOf = (code: number): TableField | undefined => FIELDS[code];

/** Where a value and its key are in bytes. Numbers are positions. */
export interface ValuePlace {
  readonly bytes: Buffer;
  /** 20 bytes. */
  readonly address: number;
  /** 32 bytes. Undefined if the value is not that of a slot. */
  readonly slot: number | undefined;
  /** 32 bytes. */
  readonly value: number;
}

const hexAt = (bytes: Buffer, start: number, length: number): `0x${string}` =>
  `0x${bytes.toString("hex", start, start + length)}`;

/** Returns the key of a place. */
export const keyAt = <Field extends TableField>(field: Field, { bytes, address, slot }: ValuePlace) => ({
  field,
  address: hexAt(bytes, address, ADDRESS_BYTES),
  slot: slot === undefined ? undefined : hexAt(bytes, slot, SLOT_BYTES),
});

/** Odd constants of MurmurHash3 (https://github.com/aappleby/smhasher, MurmurHash3.cpp). */
const FIRST_FACTOR = 0xcc9e2d51;
const SECOND_FACTOR = 0x85ebca6b;

/** Writes one key at a time as words of 32 bits, with their hash. It is reused, so that a look-up allocates nothing. */
export class KeyEncoder {
  readonly words = new Int32Array(KEY_WORDS);
  readonly #bytes = Buffer.from(this.words.buffer);
  /** Clients choose keys. With a secret seed, they cannot choose keys of one hash. */
  readonly #seed = randomInt(2 ** 32);
  #hash = 0;
  #address: Address | undefined;

  /** The hash of the key, a signed integer of 32 bits. */
  get hash(): number {
    return this.#hash;
  }

  /** Encodes a key. Returns this encoder, whose content changes with the next key. */
  encode({ address, field, slot }: TableKey, version = 0): this {
    const { words } = this;
    // Most keys follow one of the same account.
    if (address !== this.#address) {
      this.#bytes.write(address.slice(2), 0, "hex");
      this.#address = address;
    }
    words[FIELD_WORD] = FIELD_CODES[field] | (version << FIELD_BITS);
    if (slot === undefined) {
      this.#bytes.fill(0, SLOT_START);
    } else {
      this.#bytes.write(slot.slice(2), SLOT_START, "hex");
    }
    return this.#hashed();
  }

  /** Encodes the key of a place. */
  encodeAt(field: TableField, { bytes, address, slot }: ValuePlace): this {
    this.#address = undefined;
    bytes.copy(this.#bytes, 0, address, address + ADDRESS_BYTES);
    this.words[FIELD_WORD] = FIELD_CODES[field];
    if (slot === undefined) {
      this.#bytes.fill(0, SLOT_START);
    } else {
      bytes.copy(this.#bytes, SLOT_START, slot, slot + SLOT_BYTES);
    }
    return this.#hashed();
  }

  #hashed(): this {
    const { words } = this;
    let hash = this.#seed;
    for (let word = 0; word < KEY_WORDS; word++) {
      hash = Math.imul(hash ^ (words[word] ?? 0), FIRST_FACTOR);
      hash ^= hash >>> 15;
    }
    hash = Math.imul(hash, SECOND_FACTOR);
    this.#hash = hash ^ (hash >>> 13);
    return this;
  }
}
