/** Encoding from parts that are encoded already, so that bytes which do not change are never encoded twice. */

const EMPTY = Uint8Array.of(0x80);

/** The prefix of a payload: `offset` is 0x80 for a string, 0xc0 for a list. Yellow Paper, appendix B. */
const prefix = (length: number, offset: number): Uint8Array => {
  if (length < 56) return Uint8Array.of(offset + length);
  if (length < 0x100) return Uint8Array.of(offset + 56, length);
  if (length < 0x10000) return Uint8Array.of(offset + 57, length >> 8, length);
  if (length < 0x1000000) return Uint8Array.of(offset + 58, length >> 16, length >> 8, length);
  return Uint8Array.of(offset + 59, length >>> 24, length >> 16, length >> 8, length);
};

const prefixLength = (length: number): number =>
  length < 56 ? 1 : length < 0x100 ? 2 : length < 0x10000 ? 3 : length < 0x1000000 ? 4 : 5;

/** How long a list with that payload is. */
export const listLength = (payloadLength: number): number => prefixLength(payloadLength) + payloadLength;

export const bytesLength = (bytes: Uint8Array): number =>
  bytes.length === 1 && (bytes[0] ?? 0) < 0x80 ? 1 : prefixLength(bytes.length) + bytes.length;

export const encodeBytes = (bytes: Uint8Array): Uint8Array => {
  if (bytes.length === 0) return EMPTY;
  if (bytes.length === 1 && (bytes[0] ?? 0) < 0x80) return bytes;
  return concatBytes([prefix(bytes.length, 0x80), bytes]);
};

/** Minimal big-endian bytes; zero is the empty string. */
export const encodeNumber = (value: bigint | number): Uint8Array => encodeBytes(numberBytes(value));

export const numberBytes = (value: bigint | number): Uint8Array => {
  const digits = value.toString(16);
  return digits === "0" ? new Uint8Array(0) : Uint8Array.fromHex(digits.length % 2 === 0 ? digits : `0${digits}`);
};

/** A list of items that are encoded already. */
export const encodeList = (items: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const item of items) length += item.length;
  return concatBytes([prefix(length, 0xc0), ...items]);
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
