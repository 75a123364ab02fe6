import type { BlockId } from "../../core/heads.ts";
import { type Address, isAddress } from "../../ethereum/hex.ts";
import type { BlockValues } from "../blockValues.ts";
import { paramsOfKey } from "./callKey.ts";

/** Codes that are remembered. */
const MAX_CODES = 1_000;

/** Returns the recipient of a call, from its canonical text. Undefined: it creates a contract. */
const recipientOf = (key: string): Address | undefined => {
  const [call] = paramsOfKey(key);
  const to = (call as { readonly to?: unknown } | undefined)?.to;
  return isAddress(to) ? to : undefined;
};

/** Hashes of codes whose execution here gave another result than a node. Nodes answer their calls until a restart. */
export class ForwardedContracts {
  readonly #values: Pick<BlockValues, "get">;
  readonly #codes = new Set<string>();

  constructor(values: Pick<BlockValues, "get">) {
    this.#values = values;
  }

  /** Forwards calls of the code that a call runs first. */
  add(key: string, block: BlockId): void {
    const code = this.#codeOf(key, block);
    if (code !== undefined && this.#codes.size < MAX_CODES) {
      this.#codes.add(code);
    }
  }

  has(key: string, block: BlockId): boolean {
    const code = this.#codes.size === 0 ? undefined : this.#codeOf(key, block);
    return code !== undefined && this.#codes.has(code);
  }

  #codeOf(key: string, block: BlockId): string | undefined {
    const address = recipientOf(key);
    return address && this.#values.get({ field: "code", address, slot: undefined }, block);
  }
}
