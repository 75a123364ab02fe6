import {
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
} from "./jsonBytes.ts";
import { INVALID, skipLiteral, skipNumber, skipString } from "./skipScalar.ts";
import { skipSpace } from "./skipSpace.ts";

// The strict scanner, for clients' bodies. It accepts exactly the JSON of RFC 8259, up to MAX_DEPTH.

/**
 * Limit of nested containers (docs/answers.md, Requests). It keeps the recursion below far from the end of the stack.
 */
export const MAX_DEPTH = 256;

/** Returned instead of a position if the text exceeds MAX_DEPTH. */
export const TOO_DEEP = -2;

const TRUE = [LETTER_T, 0x72, 0x75, 0x65];
const FALSE = [LETTER_F, 0x61, 0x6c, 0x73, 0x65];
const NULL = [LETTER_N, 0x75, 0x6c, 0x6c];

/** Scans the value at `at`. Returns the position after it, or an error as `skipValue` does. */
export type SkipValue = (bytes: Uint8Array, at: number, depth: number) => number;
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
