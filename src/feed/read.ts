import { type Address, type Data, type Hash, isAddress, isData, isHash, isQuantity } from "../ethereum/hex.ts";
import { type Fields, isFields } from "../json/fields.ts";

/** A field of a message does not have the type of the wire format. */
export class Malformed extends Error {}

/** `0x` and the 64 digits of a 256-bit value. */
const MAX_QUANTITY_LENGTH = 66;

/** Reads fields of untrusted JSON. Hex values are returned in lower case. Throws Malformed. */
export const read = {
  hash: (value: unknown): Hash => {
    if (!isHash(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  data: (value: unknown): Data => {
    if (!isData(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  address: (value: unknown): Address => {
    if (!isAddress(value)) {
      throw new Malformed();
    }
    return `0x${value.slice(2).toLowerCase()}`;
  },
  quantity: (value: unknown): bigint => {
    if (!isQuantity(value) || value.length > MAX_QUANTITY_LENGTH) {
      throw new Malformed();
    }
    return BigInt(value);
  },
  /** Reads a storage slot. Some senders omit leading zeros. */
  slot: (value: unknown): Hash => `0x${read.quantity(value).toString(16).padStart(64, "0")}`,
  list: (value: unknown): readonly unknown[] => {
    if (!Array.isArray(value)) {
      throw new Malformed();
    }
    return value;
  },
  fields: (value: unknown): Fields => {
    if (!isFields(value)) {
      throw new Malformed();
    }
    return value;
  },
  /** Returns `undefined` for a field that is absent or `null`. */
  optional: <T>(value: unknown, reader: (value: unknown) => T): T | undefined =>
    value === undefined || value === null ? undefined : reader(value),
};
