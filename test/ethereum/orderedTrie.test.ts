import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type LeafCache, orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { referenceTrieRoot } from "../support/builders/referenceTrie.ts";

test("an empty trie has the known root", () => {
  assert.equal(orderedTrieRoot([]), "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
});

for (const count of [1, 2, 3, 16, 17, 127, 128, 129, 130, 255, 256, 257, 300]) {
  test(`${count} values have the library's root`, async () => {
    // Lengths around 32 bytes: a shorter node is embedded in its parent.
    const values = Array.from({ length: count }, (_, at) => new Uint8Array(1 + ((at * 7) % 60)).fill(at % 251 || 1));
    assert.equal(orderedTrieRoot(values), await referenceTrieRoot(values));
  });
}

test("any values have the library's root", async () => {
  const value = fc.uint8Array({ minLength: 1, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(fc.array(value, { maxLength: 40 }), async (values) => {
      assert.equal(orderedTrieRoot(values), await referenceTrieRoot(values));
    }),
    { numRuns: 30 },
  );
});

test("a list that grows has the library's root with a cache of leaves", async () => {
  const cache: LeafCache = new WeakMap();
  // The same array at two positions has two keys.
  const twice = new Uint8Array(40).fill(7);
  const values = Array.from({ length: 300 }, (_, at) =>
    at % 50 === 3 ? twice : new Uint8Array(1 + at).fill(at % 251 || 1),
  );
  for (const count of [1, 2, 3, 16, 17, 100, 128, 129, 130, 255, 256, 257, 300, 90]) {
    const list = values.slice(0, count);
    assert.equal(orderedTrieRoot(list, cache), await referenceTrieRoot(list));
  }
});
