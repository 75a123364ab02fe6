import assert from "node:assert/strict";
import { test } from "node:test";
import { createMPT } from "@ethereumjs/mpt";
import { type Data, formatData, parseData } from "../../src/ethereum/hex.ts";
import { keccak256 } from "../../src/ethereum/keccak.ts";
import { nodesOnPath, slotOf } from "../support/builders/provenState.ts";
import { createRandomBelow } from "../support/builders/randomValues.ts";
import { SecureTrie } from "../world/state/secureTrie.ts";

const MAX_KEYS = 60;
const LONG = "ab".repeat(40);

test("the tries of the stand-in chain have the roots and proofs of the library's trie", async () => {
  const below = createRandomBelow(1);
  for (let count = 0; count < MAX_KEYS; count++) {
    const entries = Array.from({ length: count }, (_, index): [Data, Uint8Array] => [
      slotOf(index),
      parseData(`0x${below(2) === 0 ? "01" : LONG}`),
    ]);
    const library = await createMPT({ useRootPersistence: false });
    for (const [key, value] of entries) {
      await library.put(keccak256(parseData(key)), value);
    }
    const trie = new SecureTrie(entries);
    assert.equal(trie.root, formatData(library.root()));
    for (const key of [0, 7, 1_000].map(slotOf)) {
      const expected = count === 0 ? [] : await nodesOnPath(library, keccak256(parseData(key)));
      assert.deepEqual(trie.proofOf(key), expected);
    }
  }
});
