import { COMMA, QUOTE } from "../json/jsonBytes.ts";
import { skipString } from "../json/skipScalar.ts";

/** A scan needs about 0.02 microseconds for each value, and JSON.parse about 0.1. */
export const MAX_VALUES = 100_000;

/** Whether the text has more commas than values are allowed. The native search is cheap if there are few commas. */
const hasManyCommas = (json: Buffer): boolean => {
  let count = 0;
  for (let at = json.indexOf(COMMA); at >= 0; at = json.indexOf(COMMA, at + 1)) {
    if (++count > MAX_VALUES) {
      return true;
    }
  }
  return false;
};

/**
 * Whether JSON text has more than MAX_VALUES values. It ends at the first value above the limit.
 * The result is false for a text that is not JSON before that value.
 */
export const hasManyValues = (json: Buffer): boolean => {
  if (!hasManyCommas(json)) {
    return false;
  }
  let count = 0;
  for (let at = 0; at >= 0 && at < json.length; ) {
    if (json[at] === QUOTE) {
      at = skipString(json, at);
      continue;
    }
    if (json[at] === COMMA && ++count > MAX_VALUES) {
      return true;
    }
    at++;
  }
  return false;
};
