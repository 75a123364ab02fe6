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

/**
 * Parsed parameters by method and text, because a call whose response is cached mostly has a text that was parsed before.
 * Holds the last 1,024 to 2,048 texts.
 */
export class ParsedReads {
  #recent = new Map<string, ParsedRead>();
  #older: ReadonlyMap<string, ParsedRead> = new Map();

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
    const parsed = this.#older.get(key) ?? parse(call);
    if (this.#recent.size >= MAX_ENTRIES) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, parsed);
    return parsed;
  }
}
