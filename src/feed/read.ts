import { type Address, type Data, type Hash, isAddress, isData, isHash, isQuantity } from "../ethereum/hex.ts";

/** A field of a message is not what the wire format says. */
export class Malformed extends Error {}

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** 2^256 has 64 digits; more would only cost time. */
const MAX_QUANTITY_LENGTH = 66;

/** Untrusted JSON -> value, hex in lower case; throws Malformed. */
export const read = {
  hash: (value: unknown): Hash => {
    if (!isHash(value)) throw new Malformed();
    return `0x${value.slice(2).toLowerCase()}`;
  },
  data: (value: unknown): Data => {
    if (!isData(value)) throw new Malformed();
    return `0x${value.slice(2).toLowerCase()}`;
  },
  address: (value: unknown): Address => {
    if (!isAddress(value)) throw new Malformed();
    return `0x${value.slice(2).toLowerCase()}`;
  },
  quantity: (value: unknown): bigint => {
    if (!isQuantity(value) || value.length > MAX_QUANTITY_LENGTH) throw new Malformed();
    return BigInt(value);
  },
  /** A word that some write without leading zeros. */
  slot: (value: unknown): Hash => `0x${read.quantity(value).toString(16).padStart(64, "0")}`,
  list: (value: unknown): readonly unknown[] => {
    if (!Array.isArray(value)) throw new Malformed();
    return value;
  },
  fields: (value: unknown): Fields => {
    if (!isFields(value)) throw new Malformed();
    return value;
  },
  /** Absent and `null` are the same on this wire. */
  optional: <T>(value: unknown, reader: (value: unknown) => T): T | undefined =>
    value === undefined || value === null ? undefined : reader(value),
};
