import { skipSpace } from "./skipValue.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Returns the offset after the closing quote, or -1; `from` is the offset of the opening quote. */
const skipString = (bytes: Uint8Array, from: number): number => {
  let at = from + 1;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) {
      return -1;
    }
    let backslashes = 0;
    while (bytes[quote - 1 - backslashes] === BACKSLASH) {
      backslashes += 1;
    }
    if (backslashes % 2 === 0) {
      return quote + 1;
    }
    at = quote + 1;
  }
};

const isScalarEnd = (byte: number | undefined): boolean =>
  byte === undefined || byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT || isSpace(byte);

const skipScalar = (bytes: Uint8Array, from: number): number => {
  let at = from;
  while (!isScalarEnd(bytes[at])) {
    at += 1;
  }
  return at === from ? -1 : at;
};

const skipNested = (bytes: Uint8Array, from: number): number => {
  let depth = 0;
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = skipString(bytes, at) - 1;
      if (at < 0) {
        return -1;
      }
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1;
      if (depth === 0) {
        return at + 1;
      }
    }
  }
  return -1;
};

/**
 * Returns the offset after the value that begins at `from`, or -1 if the text ends before the value.
 * It checks only brackets and strings, to any depth.
 * The strict scanner for clients' bodies rejects 257 levels; traces of nodes may have more.
 */
const skipValue = (bytes: Uint8Array, from: number): number => {
  const byte = bytes[from];
  if (byte === QUOTE) {
    return skipString(bytes, from);
  }
  return byte === OPEN_OBJECT || byte === OPEN_ARRAY ? skipNested(bytes, from) : skipScalar(bytes, from);
};

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
  if (bytes[at] !== OPEN_OBJECT) {
    return false;
  }
  at = skipSpace(bytes, at + 1);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipString(bytes, at);
    const colon = skipSpace(bytes, keyEnd);
    if (keyEnd < 0 || bytes[colon] !== COLON) {
      return false;
    }
    const start = skipSpace(bytes, colon + 1);
    const end = skipValue(bytes, start);
    if (end < 0) {
      return false;
    }
    yield { key: asText(bytes.subarray(at + 1, keyEnd - 1)), value: bytes.subarray(start, end), start };
    at = skipSpace(bytes, end);
    if (bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1);
    }
  }
  return bytes[at] === CLOSE_OBJECT;
};

/** Yields the elements of the array that begins at `from`, in order, without copying. */
export const elements = function* (bytes: Uint8Array, from = 0): Generator<Uint8Array> {
  let at = skipSpace(bytes, from);
  if (bytes[at] !== OPEN_ARRAY) {
    return;
  }
  at = skipSpace(bytes, at + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_ARRAY) {
    const end = skipValue(bytes, at);
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

const decoder = new TextDecoder();
export const asText = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Whether a value that `members` or `elements` yielded is `null`. */
export const isNull = (value: Uint8Array): boolean => value.length === 4 && value[0] === 0x6e;
