import {
  asText,
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from "./jsonBytes.ts";
import type { OnMember } from "./skipValue.ts";

// The skipping scanner, for nodes' responses. It checks only strings and brackets, to any depth.
// The strict scanner rejects 257 levels; traces of nodes may have more.

/** Returned instead of a position if the text ends before the value. */
const UNFINISHED = -1;

/** The first bytes of a string are compared one by one; the rest of a longer one (a log's data) is left to memchr. */
const COMPARED_BYTES = 72;

/** Finds the closing quote at or after `from`, which must not be inside an escape. */
const skipLongString = (bytes: Uint8Array, from: number): number => {
  let at = from;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) {
      return UNFINISHED;
    }
    let backslashes = 0;
    while (quote - 1 - backslashes >= at && bytes[quote - 1 - backslashes] === BACKSLASH) {
      backslashes++;
    }
    at = quote + 1;
    if (backslashes % 2 === 0) {
      return at;
    }
  }
};

/** Returns the position after the string whose opening quote is at `start`, or -1 if it has no closing quote. */
export const skipStringUnchecked = (bytes: Uint8Array, start: number): number => {
  let at = start + 1;
  const quote = QUOTE;
  const backslash = BACKSLASH;
  const end = Math.min(bytes.length, at + COMPARED_BYTES);
  for (; at < end; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      return at + 1;
    }
    if (byte === backslash) {
      at++;
    }
  }
  return skipLongString(bytes, at);
};

/** Skips a number or a literal: all bytes up to the next comma, bracket or space. */
const skipScalarUnchecked = (bytes: Uint8Array, start: number): number => {
  for (let at = start; ; at++) {
    const byte = bytes[at] ?? 0;
    // Spaces and the end of the text are not above 0x20.
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACKET || byte === CLOSE_BRACE) {
      return at === start ? UNFINISHED : at;
    }
  }
};

/** Skips an array or an object by counting brackets outside strings. */
const skipNestedUnchecked = (bytes: Uint8Array, start: number): number => {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    // A bracket and the brace of the same direction differ in this bit.
    const brace = byte | 0x20;
    if (byte === QUOTE) {
      at = skipStringUnchecked(bytes, at) - 1;
      if (at < 0) {
        return UNFINISHED;
      }
    } else if (brace === OPEN_BRACE) {
      depth++;
    } else if (brace === CLOSE_BRACE) {
      depth--;
      if (depth === 0) {
        return at + 1;
      }
    }
  }
  return UNFINISHED;
};

/** Returns the position after the value at `start`, or -1 if the text ends before the value. */
export const skipValueUnchecked = (bytes: Uint8Array, start: number): number => {
  const byte = bytes[start];
  if (byte === QUOTE) {
    return skipStringUnchecked(bytes, start);
  }
  return byte === OPEN_BRACE || byte === OPEN_BRACKET
    ? skipNestedUnchecked(bytes, start)
    : skipScalarUnchecked(bytes, start);
};

/** Returns the position after the object at `start`, or -1. Calls `onMember` for each member, in order. */
export const skipObjectUnchecked = (bytes: Uint8Array, start: number, onMember: OnMember): number => {
  let at = skipSpace(bytes, start + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipStringUnchecked(bytes, at);
    const colon = skipSpace(bytes, keyEnd);
    if (keyEnd < 0 || bytes[colon] !== COLON) {
      return UNFINISHED;
    }
    const valueAt = skipSpace(bytes, colon + 1);
    const valueEnd = skipValueUnchecked(bytes, valueAt);
    if (valueEnd < 0) {
      return UNFINISHED;
    }
    onMember(at, keyEnd, valueAt, valueEnd);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] !== COMMA) {
      break;
    }
    at = skipSpace(bytes, at + 1);
    if (bytes[at] !== QUOTE) {
      return UNFINISHED;
    }
  }
  return bytes[at] === CLOSE_BRACE ? at + 1 : UNFINISHED;
};

interface Member {
  readonly key: string;
  readonly value: Uint8Array;
  /** Offset of the value in the object's bytes. */
  readonly start: number;
}

/**
 * Yields the members of the object that begins at `from`, in order, without copying.
 * Returns false if the text is not a JSON object, and true after the last member.
 */
export const members = function* (bytes: Uint8Array, from = 0): Generator<Member, boolean> {
  let at = skipSpace(bytes, from);
  if (bytes[at] !== OPEN_BRACE) {
    return false;
  }
  at = skipSpace(bytes, at + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipStringUnchecked(bytes, at);
    const colon = skipSpace(bytes, keyEnd);
    if (keyEnd < 0 || bytes[colon] !== COLON) {
      return false;
    }
    const start = skipSpace(bytes, colon + 1);
    const end = skipValueUnchecked(bytes, start);
    if (end < 0) {
      return false;
    }
    yield { key: asText(bytes.subarray(at + 1, keyEnd - 1)), value: bytes.subarray(start, end), start };
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1);
    }
  }
  return bytes[at] === CLOSE_BRACE;
};

/** Yields the elements of the array that begins at `from`, in order, without copying. */
export const elements = function* (bytes: Uint8Array, from = 0): Generator<Uint8Array> {
  let at = skipSpace(bytes, from);
  if (bytes[at] !== OPEN_BRACKET) {
    return;
  }
  at = skipSpace(bytes, at + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_BRACKET) {
    const end = skipValueUnchecked(bytes, at);
    if (end < 0) {
      return;
    }
    yield bytes.subarray(at, end);
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1);
    }
  }
};

/** Returns the JSON text of one element of a valid JSON array, or undefined. No element is parsed. */
export const elementAt = (array: Uint8Array, index: number): Uint8Array | undefined => {
  let position = 0;
  for (const element of elements(array)) {
    if (position === index) {
      return element;
    }
    position++;
  }
  return undefined;
};
