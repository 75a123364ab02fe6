import { createMPT } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import { formatData, type Hash } from "../../../src/ethereum/hex.ts";

/** Returns the root of an ordered trie as the library computes it. */
export const referenceTrieRoot = async (values: readonly Uint8Array[]): Promise<Hash> => {
  const trie = await createMPT();
  for (const [index, value] of values.entries()) {
    await trie.put(RLP.encode(index), value);
  }
  return formatData(trie.root());
};
