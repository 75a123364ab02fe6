import {
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
