import assert from "node:assert/strict";
import { test } from "node:test";
import { createMPT, type MerklePatriciaTrie } from "@ethereumjs/mpt";
import { formatData, parseData } from "../../src/ethereum/hex.ts";
import { keccak256 } from "../../src/ethereum/keccak.ts";
import { MissingNode, PartialTrie, TrieNodes } from "../../src/ethereum/partialTrie.ts";
import { encodeBytes, encodeList } from "../../src/ethereum/rlp.ts";
import { WrongProof } from "../../src/ethereum/trieNode.ts";
import { nodesOnPath } from "../support/builders/provenState.ts";

/** A key of 32 bytes that begins with these digits, and goes on with zeros. */
const keyOf = (digits: string): Uint8Array => parseData(`0x${digits.padEnd(64, "0")}`);
const LONG = parseData(`0x${"ab".repeat(40)}`);
const SHORT = parseData("0x07");

const trieOf = async (keys: readonly string[], value = LONG): Promise<MerklePatriciaTrie> => {
  const trie = await createMPT({ useRootPersistence: false });
  for (const key of keys) {
    await trie.put(keyOf(key), value);
  }
  return trie;
};

/** The part of a trie that has the paths of these keys. */
const partOf = async (trie: MerklePatriciaTrie, keys: readonly string[]): Promise<PartialTrie> => {
  const nodes = await Promise.all(keys.map((key) => nodesOnPath(trie, keyOf(key))));
  return new PartialTrie(new TrieNodes(nodes.flat().map(parseData)), trie.root());
};

const KEYS = ["a1111", "a1112", "a2", "b", "c00d1", "c00d2", "c00d3"];

for (const value of [LONG, SHORT]) {
  test(`one update has the root of the library, with values of ${value.length} bytes`, async () => {
    for (const key of [...KEYS, "a1113", "a12", "d", "c1", "c00e", "c00d11", "a11111"]) {
      const trie = await trieOf(KEYS, value);
      const [written, removed] = [await partOf(trie, KEYS), await partOf(trie, KEYS)];
      written.put(keyOf(key), parseData("0x0909"));
      removed.remove(keyOf(key));
      await trie.put(keyOf(key), parseData("0x0909"));
      assert.equal(formatData(written.root), formatData(trie.root()), `put ${key}`);
      assert.equal(written.get(keyOf(key))?.toHex(), "0909");
      await trie.del(keyOf(key));
      assert.equal(formatData(removed.root), formatData(trie.root()), `remove ${key}`);
      assert.equal(removed.get(keyOf(key)), undefined);
    }
  });
}

test("a trie becomes empty, and grows from nothing", async () => {
  const trie = await trieOf(KEYS);
  const part = await partOf(trie, KEYS);
  for (const key of KEYS) {
    part.remove(keyOf(key));
  }
  const empty = await trieOf([]);
  assert.equal(formatData(part.root), formatData(empty.root()));
  const grown = new PartialTrie(new TrieNodes([]), empty.root());
  for (const key of KEYS) {
    assert.equal(grown.get(keyOf(key)), undefined);
    grown.put(keyOf(key), LONG);
  }
  assert.equal(formatData(grown.root), formatData(trie.root()));
});

test("a removal that leaves one child needs that child, and changes nothing without it", async () => {
  // Leaves with equal paths would be one node.
  const trie = await trieOf(["a1", "a21", "b"]);
  const part = await partOf(trie, ["a1"]);
  const before = formatData(part.root);
  assert.throws(() => part.remove(keyOf("a1")), MissingNode);
  assert.equal(formatData(part.root), before);
  // A third leaf that comes first keeps the branch.
  part.put(keyOf("a3"), LONG);
  part.remove(keyOf("a1"));
  await trie.put(keyOf("a3"), LONG);
  await trie.del(keyOf("a1"));
  assert.equal(formatData(part.root), formatData(trie.root()));
});

test("a key whose path is not known is neither read, written nor removed", async () => {
  const trie = await trieOf(KEYS);
  const part = await partOf(trie, ["b"]);
  const before = formatData(part.root);
  assert.throws(() => part.get(keyOf("a1111")), MissingNode);
  assert.throws(() => part.put(keyOf("a1111"), SHORT), MissingNode);
  assert.throws(() => part.remove(keyOf("a1111")), MissingNode);
  assert.equal(formatData(part.root), before);
  assert.equal(part.get(keyOf("d")), undefined);
});

test("nodes that no trie of 32-byte keys has are refused", () => {
  const item = (digits: string) => encodeBytes(parseData(`0x${digits}`));
  const branch = (own: string, child = "") => encodeList([...Array.from({ length: 16 }, () => item(child)), item(own)]);
  const wrong: Readonly<Record<string, Uint8Array>> = {
    "a value in a branch": branch("01"),
    "a reference of 31 bytes": branch("", "11".repeat(31)),
    "a leaf with a short path": encodeList([item("20a0"), item("01")]),
    "a leaf without a value": encodeList([item(`20${"a0".padEnd(64, "0")}`), item("")]),
    "an extension without a path": encodeList([item("00"), item("11".repeat(32))]),
    "an extension without a child": encodeList([item("1a"), item("")]),
    "an extension of the whole key": encodeList([item(`00${"a0".padEnd(64, "0")}`), item("11".repeat(32))]),
    "three items": encodeList([item("1a"), item("01"), item("01")]),
    "a string": item("aa".repeat(40)),
  };
  for (const [name, node] of Object.entries(wrong)) {
    const part = new PartialTrie(new TrieNodes([node]), keccak256(node));
    for (const run of [() => part.get(keyOf("a")), () => part.put(keyOf("a"), SHORT), () => part.remove(keyOf("a"))]) {
      assert.throws(run, WrongProof, name);
    }
  }
});
