import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  LETTER_F,
  LETTER_N,
  LETTER_T,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from "./jsonBytes.ts";

// The strict scanner, for clients' bodies. It accepts exactly the JSON of RFC 8259, up to MAX_DEPTH.

/**
 * Limit of nested containers (docs/answers.md, Parameters). It keeps the recursion below far from the end of the stack.
 */
export const MAX_DEPTH = 256;

/** Returned instead of a position if the text exceeds MAX_DEPTH. */
export const TOO_DEEP = -2;

const TRUE = [LETTER_T, 0x72, 0x75, 0x65];
const FALSE = [LETTER_F, 0x61, 0x6c, 0x73, 0x65];
const NULL = [LETTER_N, 0x75, 0x6c, 0x6c];

/** Scans the value at `at`. Returns the position after it, or an error as `skipValue` does. */
type SkipValue = (bytes: Uint8Array, at: number, depth: number) => number;
/** Called with the positions of a key, quotes included, and of its value. */
export type OnMember = (keyAt: number, keyEnd: number, valueAt: number, valueEnd: number) => void;

/** Returns the position after an array. `skip` reads each item, so that a batch parses its calls in the same pass. */
export const skipArray = (bytes: Uint8Array, start: number, depth: number, skip: SkipValue = skipValue): number => {
  if (depth > MAX_DEPTH) {
    return TOO_DEEP;
  }
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) {
    return at + 1;
  }
  for (;;) {
    at = skip(bytes, at, depth + 1);
    if (at < 0) {
      return at;
    }
    at = skipSpace(bytes, at);
    if (bytes[at] === CLOSE_BRACKET) {
      return at + 1;
    }
    if (bytes[at] !== COMMA) {
      return INVALID;
    }
    at = skipSpace(bytes, at + 1);
  }
};

/** Returns the position after an object. Calls `onMember` for each member, in order. */
export const skipObject = (bytes: Uint8Array, start: number, depth: number, onMember?: OnMember): number => {
  if (depth > MAX_DEPTH) {
    return TOO_DEEP;
  }
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) {
    return at + 1;
  }
  for (;;) {
    if (bytes[at] !== QUOTE) {
      return INVALID;
    }
    const keyEnd = skipString(bytes, at);
    if (keyEnd < 0) {
      return INVALID;
    }
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== COLON) {
      return INVALID;
    }
    const valueAt = skipSpace(bytes, colon + 1);
    const valueEnd = skipValue(bytes, valueAt, depth + 1);
    if (valueEnd < 0) {
      return valueEnd;
    }
    onMember?.(at, keyEnd, valueAt, valueEnd);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) {
      return at + 1;
    }
    if (bytes[at] !== COMMA) {
      return INVALID;
    }
    at = skipSpace(bytes, at + 1);
  }
};

/**
 * Returns the position after the JSON value at `at`, or a negative number: INVALID or TOO_DEEP.
 * `depth` is the nesting level of this value if it is a container.
 */
export function skipValue(bytes: Uint8Array, at: number, depth: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at);
    case OPEN_BRACE:
      return skipObject(bytes, at, depth);
    case OPEN_BRACKET:
      return skipArray(bytes, at, depth);
    case LETTER_T:
      return skipLiteral(bytes, at, TRUE);
    case LETTER_F:
      return skipLiteral(bytes, at, FALSE);
    case LETTER_N:
      return skipLiteral(bytes, at, NULL);
    default:
      return skipNumber(bytes, at);
  }
}

/** Returned instead of a position if the text is not JSON (RFC 8259). */
const INVALID = -1;

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
const skipNumber = (bytes: Uint8Array, start: number): number => {
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
const skipLiteral = (bytes: Uint8Array, at: number, literal: readonly number[]): number => {
  for (let index = 0; index < literal.length; index++) {
    if (bytes[at + index] !== literal[index]) {
      return INVALID;
    }
  }
  return at + literal.length;
};
