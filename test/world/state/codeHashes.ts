import { type Data, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";

/** The hashes of codes, each computed once. */
export class CodeHashes {
  readonly #hashes = new Map<Data, Hash>([["0x", EMPTY_CODE_HASH]]);

  of(code: Data): Hash {
    const known = this.#hashes.get(code) ?? keccak256Hex(parseData(code));
    this.#hashes.set(code, known);
    return known;
  }
}
