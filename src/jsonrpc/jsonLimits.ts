import { hashBytes } from "../json/hashBytes.ts";
import { COLON, COMMA, QUOTE, skipSpace } from "../json/jsonBytes.ts";
import { skipStringUnchecked } from "../json/members.ts";
import { skipString } from "../json/skipValue.ts";
import { invalidParams } from "./rpcError.ts";

/** JSON.parse needs about 3 microseconds for each new member name, and checks of the parameters as much again. */
const MAX_MEMBER_NAMES = 5_000;

/**
 * Limits the member names in the parameters of one request body that are parsed on the event loop.
 * It reads valid JSON and ends at the first name above the limit.
 */
export class MemberBudget {
  /** Their hashes: equal ones of two names do no harm. */
  readonly #names = new Set<number>();

  /** Counts the names of one call. Throws RpcError above the limit. */
  take(json: Uint8Array): void {
    for (let at = 0; at >= 0 && at < json.length; ) {
      if (json[at] !== QUOTE) {
        at++;
        continue;
      }
      const end = skipStringUnchecked(json, at);
      const next = skipSpace(json, end);
      if (json[next] === COLON) {
        this.#countName(hashBytes(json, at, end));
      }
      at = next;
    }
  }

  #countName(hash: number): void {
    this.#names.add(hash);
    if (this.#names.size > MAX_MEMBER_NAMES) {
      throw invalidParams(`the parameters of one request have more than ${MAX_MEMBER_NAMES} different member names`);
    }
  }
}

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
