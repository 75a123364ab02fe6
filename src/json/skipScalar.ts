import { BACKSLASH, QUOTE } from "./jsonBytes.ts";

/** Returned instead of a position if the text is not JSON (RFC 8259). */
export const INVALID = -1;

const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= NINE;

const isHexDigit = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);

/** Returns the position of the last byte of the escape whose backslash is at `at`. */
const lastOfEscape = (bytes: Uint8Array, at: number): number => {
  switch (bytes[at + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 1;
    case 0x75: // u
      for (let digit = at + 2; digit < at + 6; digit++) {
        if (!isHexDigit(bytes[digit])) {
          return INVALID;
        }
      }
      return at + 5;
    default:
      return INVALID;
  }
};

/** 1 for the bytes that may be inside a string as they are: no control character, quote or backslash. */
const PLAIN = new Uint8Array(256).fill(1, 0x20);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** Returns the position after the string whose opening quote is at `start`, or INVALID. */
export const skipString = (bytes: Uint8Array, start: number): number => {
  for (let at = start + 1; ; at++) {
    // A read past the end gives 0. That is a control character, which is invalid in a string.
    const byte = bytes[at] ?? 0;
    if (PLAIN[byte] === 1) {
      continue;
    }
    if (byte === QUOTE) {
      return at + 1;
    }
    at = byte === BACKSLASH ? lastOfEscape(bytes, at) : INVALID;
    if (at < 0) {
      return INVALID;
    }
  }
};

const skipDigits = (bytes: Uint8Array, start: number): number => {
  let at = start;
  while (isDigit(bytes[at])) {
    at++;
  }
  return at === start ? INVALID : at;
};

/** Returns the position after the number at `start`, or INVALID. */
export const skipNumber = (bytes: Uint8Array, start: number): number => {
  let at = bytes[start] === MINUS ? start + 1 : start;
  at = bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at);
  if (at > 0 && bytes[at] === DOT) {
    at = skipDigits(bytes, at + 1);
  }
  if (at > 0 && ((bytes[at] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[at + 1];
    at = skipDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
};

/** Returns the position after a literal such as `true` at `at`, or INVALID. */
export const skipLiteral = (bytes: Uint8Array, at: number, literal: readonly number[]): number => {
  for (let index = 0; index < literal.length; index++) {
    if (bytes[at + index] !== literal[index]) {
      return INVALID;
    }
  }
  return at + literal.length;
};
