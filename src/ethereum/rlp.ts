import { parseData } from "./hex.ts";

/** Encoding from parts that are encoded already, so that bytes which do not change are never encoded twice. */

const EMPTY = Uint8Array.of(0x80);

/** Yellow Paper, appendix B: up to 55 bytes are told in the prefix itself. */
export const prefixLength = (length: number): number =>
  length < 56 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : length < 0x1000000 ? 4 : 5;

/** Writes a prefix and returns where its payload begins. */
export const writePrefix = (into: Uint8Array, at: number, length: number, offset: 0x80 | 0xc0): number => {
  const size = prefixLength(length);
  if (size === 1) into[at] = offset + length;
  else {
    into[at] = offset + 54 + size;
    for (let byte = 1, rest = length; byte < size; byte++, rest >>>= 8) into[at + size - byte] = rest;
  }
  return at + size;
};

/** How long a list with that payload is. */
export const listLength = (payloadLength: number): number => prefixLength(payloadLength) + payloadLength;

export const bytesLength = (bytes: Uint8Array): number =>
  bytes.length === 1 && (bytes[0] ?? 0) < 0x80 ? 1 : prefixLength(bytes.length) + bytes.length;

export const encodeBytes = (bytes: Uint8Array): Uint8Array => {
  if (bytes.length === 0) return EMPTY;
  if (bytes.length === 1 && (bytes[0] ?? 0) < 0x80) return bytes;
  const encoded = new Uint8Array(prefixLength(bytes.length) + bytes.length);
  encoded.set(bytes, writePrefix(encoded, 0, bytes.length, 0x80));
  return encoded;
};

/** Minimal big-endian bytes; zero is the empty string. */
export const encodeNumber = (value: bigint | number): Uint8Array => encodeBytes(numberBytes(value));

export const numberBytes = (value: bigint | number): Uint8Array => {
  const digits = value.toString(16);
  return digits === "0" ? new Uint8Array(0) : parseData(`0x${digits.length % 2 === 0 ? digits : `0${digits}`}`);
};

/** A list of items that are encoded already. */
export const encodeList = (items: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const item of items) length += item.length;
  const encoded = new Uint8Array(prefixLength(length) + length);
  let at = writePrefix(encoded, 0, length, 0xc0);
  for (const item of items) {
    encoded.set(item, at);
    at += item.length;
  }
  return encoded;
};

export const concatBytes = (parts: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};
