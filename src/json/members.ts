import {
  asText,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
} from "./jsonBytes.ts";
import { skipStringUnchecked, skipValueUnchecked } from "./skipUnchecked.ts";

export interface Member {
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
