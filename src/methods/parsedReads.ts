import { crc32 } from "node:zlib";
import type { BlockParameter } from "../ethereum/blockParameter.ts";
import { type Call, paramsJsonOf } from "../jsonrpc/call.ts";
import type { CanonicalJson } from "./paramSpec.ts";

/** The parsed parameters of a method that reads at a block. */
export interface ParsedRead {
  readonly values: readonly CanonicalJson[];
  /** The block parameter. */
  readonly parameter: BlockParameter;
  /** See `RpcRequest`. */
  readonly canonicalParams: string;
  /** The response to a call can hold for later blocks. */
  readonly isLasting?: boolean | undefined;
}

/** A longer text is parsed each time. */
const MAX_TEXT_LENGTH = 512;
const MAX_ENTRIES = 1_024;
/** The texts that were parsed once are remembered by their hash. A later text replaces one with the same place. */
const PLACES = 4_096;

/**
 * Parsed parameters by method and text, because a call whose response is cached mostly has a text that was parsed before.
 * Holds the last 1,024 to 2,048 texts that were parsed twice. Objects of other texts would outlive the young generation.
 */
export class ParsedReads {
  #recent = new Map<string, ParsedRead>();
  #older: ReadonlyMap<string, ParsedRead> = new Map();
  readonly #parsedOnce = new Uint32Array(PLACES);

  /** Returns what `parse` returned for the same call. Errors are not stored. */
  get(call: Call, parse: (call: Call) => ParsedRead): ParsedRead {
    const text = paramsJsonOf(call);
    if (text.length > MAX_TEXT_LENGTH) {
      return parse(call);
    }
    const key = call.method + text;
    const recent = this.#recent.get(key);
    if (recent !== undefined) {
      return recent;
    }
    const older = this.#older.get(key);
    const parsed = older ?? parse(call);
    if (older === undefined && this.#isNew(key)) {
      return parsed;
    }
    if (this.#recent.size >= MAX_ENTRIES) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, parsed);
    return parsed;
  }

  /** Whether the text was not parsed before. Remembers it. */
  #isNew(key: string): boolean {
    const hash = crc32(key);
    const place = hash % PLACES;
    if (this.#parsedOnce[place] === hash) {
      return false;
    }
    this.#parsedOnce[place] = hash;
    return true;
  }
}
