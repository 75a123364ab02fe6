/** The types of the Ethereum execution API specification. All are strings with the prefix `0x`. */
export type Hex = `0x${string}`;
/** Minimal hexadecimal number, `0x0` for zero. */
export type Quantity = Hex;
/** Even number of hex digits. */
export type Data = Hex;
/** 32 bytes, lower case. */
export type Hash = Hex;
/** 20 bytes, lower case. */
export type Address = Hex;

const QUANTITY = /^0x[0-9a-fA-F]+$/;
const DATA = /^0x(?:[0-9a-fA-F]{2})*$/;

export const isData = (value: unknown): value is Data => typeof value === "string" && DATA.test(value);
export const isQuantity = (value: unknown): value is Quantity => typeof value === "string" && QUANTITY.test(value);
export const isHash = (value: unknown): value is Hash => isData(value) && value.length === 66;
export const isAddress = (value: unknown): value is Address => isData(value) && value.length === 42;

/** Replaces the prefix `0X`, which geth also accepts from clients, by `0x`. Returns any other value unchanged. */
export const lowerPrefix = (value: unknown): unknown =>
  typeof value === "string" && value.startsWith("0X") ? `0x${value.slice(2)}` : value;

export const formatQuantity = (value: bigint | number): Quantity => `0x${value.toString(16)}`;
/** Formats a number as 32 bytes: a word of the EVM, or the key of a slot. */
export const formatWord = (value: bigint | number): Hash => `0x${value.toString(16).padStart(64, "0")}`;
const viewOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export const formatData = (bytes: Uint8Array): Data => `0x${viewOf(bytes).toString("hex")}`;
/** `value` must be Data (see `isData`). */
export const parseData = (value: Data): Uint8Array => new Uint8Array(Buffer.from(value.slice(2), "hex"));
/** Writes the bytes of `value` into `into` at `start`. Returns the position after them. */
export const writeData = (value: Data, into: Uint8Array, start: number): number =>
  start + viewOf(into).write(value.slice(2), start, "hex");

export const ZERO_HASH: Hash = `0x${"0".repeat(64)}`;
export const ZERO_ADDRESS: Address = `0x${"0".repeat(40)}`;
