import { hashBytes } from "../json/hashBytes.ts";
import type { Call } from "../jsonrpc/call.ts";

/** A longer text is parsed each time. */
const MAX_TEXT_BYTES = 512;
/** A text replaces another one with the same place. */
const PLACES = 2_048;

/** A function that parses the parameters of one method. */
type Parse<T> = (call: Call) => T;

/** What a function returned for a text. */
interface KnownText {
  readonly hash: number;
  readonly text: Uint8Array;
  readonly parse: Parse<unknown>;
  readonly parsed: unknown;
}

const isEqual = (one: Uint8Array, other: Uint8Array): boolean => {
  for (let index = 0; index < one.length; index++) {
    if (one[index] !== other[index]) {
      return false;
    }
  }
  return one.length === other.length;
};

/**
 * Parsed parameters by their text, because a call whose response is cached mostly has a text that was parsed before.
 * Holds up to 2,048 texts that were parsed twice. Objects of other texts would outlive the young generation.
 */
export class ParsedReads {
  readonly #known: (KnownText | undefined)[] = new Array(PLACES).fill(undefined);
  /** The hashes of the texts that were parsed last. */
  readonly #parsedOnce = new Uint32Array(PLACES);

  /** Returns what `parse` returned for the same text. Errors are not stored. */
  get<T>(call: Call, parse: Parse<T>): T {
    const { paramsText: text } = call;
    if (text === undefined || text.length > MAX_TEXT_BYTES) {
      return parse(call);
    }
    // Many methods have the same parameters. Their names mostly differ in length.
    const hash = hashBytes(text, 0, text.length, call.method.length);
    const place = hash % PLACES;
    const known = this.#known[place];
    if (known?.hash === hash && known.parse === parse && isEqual(known.text, text)) {
      return known.parsed as T;
    }
    const parsed = parse(call);
    if (this.#parsedOnce[place] === hash) {
      // A copy, because the text is a part of a request.
      this.#known[place] = { hash, text: new Uint8Array(text), parse, parsed };
    } else {
      this.#parsedOnce[place] = hash;
    }
    return parsed;
  }
}
