// RLP (Yellow Paper, appendix B) from encoded parts, so that unchanged bytes are encoded once.

import { parseData } from "./hex.ts";

const EMPTY = Uint8Array.of(0x80);

/** Returns the bytes of the prefix for a payload of `length` bytes. Lengths up to 55 fit into the prefix byte. */
export const prefixLength = (length: number): number =>
  length < 56 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : length < 0x1000000 ? 4 : 5;

/** Writes a prefix at `at` and returns the offset of its payload. `offset`: 0x80 for a string, 0xc0 for a list. */
export const writePrefix = (into: Uint8Array, at: number, length: number, offset: 0x80 | 0xc0): number => {
  const size = prefixLength(length);
  if (size === 1) {
    into[at] = offset + length;
  } else {
    into[at] = offset + 54 + size;
    for (let byte = 1, remainder = length; byte < size; byte++, remainder >>>= 8) {
      into[at + size - byte] = remainder;
    }
  }
  return at + size;
};

/** Returns the encoded length of a list, in bytes. */
export const listLength = (payloadLength: number): number => prefixLength(payloadLength) + payloadLength;

/** Returns the encoded length of a string, in bytes. */
export const bytesLength = (bytes: Uint8Array): number =>
  bytes.length === 1 && (bytes[0] ?? 0) < 0x80 ? 1 : prefixLength(bytes.length) + bytes.length;

/** Encodes a string. May return `bytes` itself. */
export const encodeBytes = (bytes: Uint8Array): Uint8Array => {
  if (bytes.length === 0) {
    return EMPTY;
  }
  if (bytes.length === 1 && (bytes[0] ?? 0) < 0x80) {
    return bytes;
  }
  const encoded = new Uint8Array(prefixLength(bytes.length) + bytes.length);
  encoded.set(bytes, writePrefix(encoded, 0, bytes.length, 0x80));
  return encoded;
};

/** Encodes a number. */
export const encodeNumber = (value: bigint | number): Uint8Array => encodeBytes(numberBytes(value));

const MAX_UINT32 = 0xffffffff;

/** Returns the minimal big-endian bytes of a number. Zero is empty. */
export const numberBytes = (value: bigint | number): Uint8Array => {
  const number = Number(value);
  if (number <= MAX_UINT32) {
    return uint32Bytes(number);
  }
  const digits = value.toString(16);
  return parseData(`0x${digits.length % 2 === 0 ? digits : `0${digits}`}`);
};

/** Most numbers are small. Their digits would take four times as long. */
const uint32Bytes = (value: number): Uint8Array => {
  const bytes = new Uint8Array(Math.ceil((32 - Math.clz32(value)) / 8));
  for (let at = bytes.length - 1, remainder = value; at >= 0; at--, remainder >>>= 8) {
    bytes[at] = remainder;
  }
  return bytes;
};

/** Removes leading zeros. Storage values have none. */
export const stripZeros = (value: Uint8Array): Uint8Array => {
  let start = 0;
  while (start < value.length && value[start] === 0) {
    start++;
  }
  return start === 0 ? value : value.subarray(start);
};

/** Encodes a list of encoded items. */
export const encodeList = (items: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const item of items) {
    length += item.length;
  }
  const encoded = new Uint8Array(prefixLength(length) + length);
  let at = writePrefix(encoded, 0, length, 0xc0);
  for (const item of items) {
    encoded.set(item, at);
    at += item.length;
  }
  return encoded;
};

/** Joins byte arrays into a new one. */
export const concatBytes = (parts: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const part of parts) {
    length += part.length;
  }
  const joined = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
};
