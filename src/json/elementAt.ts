import { endOfValue, skipSpace } from "./skipValue.ts";

const COMMA = 0x2c;

/** Returns the JSON text of one element of a valid JSON array, or undefined. The elements before it are not parsed. */
export const elementAt = (array: Uint8Array, index: number): Uint8Array | undefined => {
  let at = skipSpace(array, skipSpace(array, 0) + 1);
  for (let position = 0; ; position++) {
    const end = endOfValue(array, at, 2);
    if (end < 0) return undefined;
    if (position === index) return array.subarray(at, end);
    at = skipSpace(array, end);
    if (array[at] !== COMMA) return undefined;
    at = skipSpace(array, at + 1);
  }
};
