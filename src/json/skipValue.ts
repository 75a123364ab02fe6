/**
 * Limit of nested containers (docs/answers.md, Requests). It keeps the recursion below far from the end of the stack.
 */
export const MAX_DEPTH = 256;

/** Returned instead of a position if the text is not JSON (RFC 8259). */
const INVALID = -1;
/** Returned instead of a position if the text exceeds MAX_DEPTH. */
export const TOO_DEEP = -2;

export const QUOTE = 0x22;
export const OPEN_BRACKET = 0x5b;
export const OPEN_BRACE = 0x7b;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const CLOSE_BRACKET = 0x5d;
const CLOSE_BRACE = 0x7d;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

const TRUE = [0x74, 0x72, 0x75, 0x65];
const FALSE = [0x66, 0x61, 0x6c, 0x73, 0x65];
const NULL = [0x6e, 0x75, 0x6c, 0x6c];

/** Scans the value at `at`. Returns the position after it, or an error as `endOfValue` does. */
export type Scan = (bytes: Uint8Array, at: number, depth: number) => number;
/** Called with the positions of a key, quotes included, and of its value. */
export type OnMember = (keyAt: number, keyEnd: number, valueAt: number, valueEnd: number) => void;

/** Returns the position of the first byte from `from` that is not JSON whitespace. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at++;
  }
};

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= ZERO && byte <= NINE;

const isHexDigit = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);

/** Returns the position of the last byte of the escape whose backslash is at `at`. */
const endOfEscape = (bytes: Uint8Array, at: number): number => {
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
      for (let digit = at + 2; digit < at + 6; digit++) if (!isHexDigit(bytes[digit])) return INVALID;
      return at + 5;
    default:
      return INVALID;
  }
};

const endOfString = (bytes: Uint8Array, start: number): number => {
  for (let at = start + 1; ; at++) {
    // A read past the end gives 0. That is a control character, which is invalid in a string.
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return INVALID;
    if (byte === BACKSLASH) {
      at = endOfEscape(bytes, at);
      if (at < 0) return INVALID;
    }
  }
};

const endOfDigits = (bytes: Uint8Array, start: number): number => {
  let at = start;
  while (isDigit(bytes[at])) at++;
  return at === start ? INVALID : at;
};

const endOfNumber = (bytes: Uint8Array, start: number): number => {
  let at = bytes[start] === MINUS ? start + 1 : start;
  at = bytes[at] === ZERO ? at + 1 : endOfDigits(bytes, at);
  if (at > 0 && bytes[at] === DOT) at = endOfDigits(bytes, at + 1);
  if (at > 0 && ((bytes[at] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[at + 1];
    at = endOfDigits(bytes, sign === PLUS || sign === MINUS ? at + 2 : at + 1);
  }
  return at;
};

const endOfLiteral = (bytes: Uint8Array, at: number, literal: readonly number[]): number => {
  for (let index = 0; index < literal.length; index++) if (bytes[at + index] !== literal[index]) return INVALID;
  return at + literal.length;
};

/** Returns the position after an array. `scan` reads each item, so that a batch parses its calls in the same pass. */
export const endOfArray = (bytes: Uint8Array, start: number, depth: number, scan: Scan = endOfValue): number => {
  if (depth > MAX_DEPTH) return TOO_DEEP;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    at = scan(bytes, at, depth + 1);
    if (at < 0) return at;
    at = skipSpace(bytes, at);
    if (bytes[at] === CLOSE_BRACKET) return at + 1;
    if (bytes[at] !== COMMA) return INVALID;
    at = skipSpace(bytes, at + 1);
  }
};

/** Returns the position after an object. Calls `onMember` for each member, in order. */
export const endOfObject = (bytes: Uint8Array, start: number, depth: number, onMember?: OnMember): number => {
  if (depth > MAX_DEPTH) return TOO_DEEP;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    if (bytes[at] !== QUOTE) return INVALID;
    const keyEnd = endOfString(bytes, at);
    if (keyEnd < 0) return INVALID;
    const colon = skipSpace(bytes, keyEnd);
    if (bytes[colon] !== COLON) return INVALID;
    const valueAt = skipSpace(bytes, colon + 1);
    const valueEnd = endOfValue(bytes, valueAt, depth + 1);
    if (valueEnd < 0) return valueEnd;
    onMember?.(at, keyEnd, valueAt, valueEnd);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return INVALID;
    at = skipSpace(bytes, at + 1);
  }
};

/**
 * Returns the position after the JSON value at `at`, or a negative number: INVALID or TOO_DEEP.
 * `depth` is the nesting level of this value if it is a container.
 */
export function endOfValue(bytes: Uint8Array, at: number, depth: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return endOfString(bytes, at);
    case OPEN_BRACE:
      return endOfObject(bytes, at, depth);
    case OPEN_BRACKET:
      return endOfArray(bytes, at, depth);
    case TRUE[0]:
      return endOfLiteral(bytes, at, TRUE);
    case FALSE[0]:
      return endOfLiteral(bytes, at, FALSE);
    case NULL[0]:
      return endOfLiteral(bytes, at, NULL);
    default:
      return endOfNumber(bytes, at);
  }
}
