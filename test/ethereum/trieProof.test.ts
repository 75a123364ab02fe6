import assert from "node:assert/strict";
import { test } from "node:test";
import { createMPT } from "@ethereumjs/mpt";
import { type Data, formatData, parseData } from "../../src/ethereum/hex.ts";
import { keccak256 } from "../../src/ethereum/keccak.ts";
import { encodeBytes, encodeList } from "../../src/ethereum/rlp.ts";
import { WrongProof } from "../../src/ethereum/trieNode.ts";
import { TrieProofs } from "../../src/ethereum/trieProof.ts";
import { nodesOnPath } from "../support/builders/provenState.ts";

/** A key of 32 bytes that begins with these digits, and goes on with zeros. */
const keyOf = (digits: string): Uint8Array => parseData(`0x${digits.padEnd(64, "0")}`);
/** A key that ends with these digits, after zeros. */
const lateKey = (digits: string): Uint8Array => parseData(`0x${digits.padStart(64, "0")}`);

const trieOf = async (entries: readonly (readonly [Uint8Array, string])[]) => {
  const trie = await createMPT({ useRootPersistence: false });
  for (const [key, value] of entries) {
    await trie.put(key, parseData(`0x${value}`));
  }
  return trie;
};

type Trie = Awaited<ReturnType<typeof trieOf>>;

const read = (trie: Trie, key: Uint8Array, proof: readonly Data[]): string | undefined => {
  const value = new TrieProofs().read(trie.root(), key, proof);
  return value === undefined ? undefined : formatData(value);
};

const isRefused = (trie: Trie, key: Uint8Array, proof: readonly Data[], message?: string): void => {
  assert.throws(() => read(trie, key, proof), WrongProof, message);
};

const LONG = "ab".repeat(40);

test("a key is in the trie, or absent at an empty place, at another leaf, or at another extension", async () => {
  const trie = await trieOf([
    [keyOf("a1111"), LONG],
    [keyOf("a1112"), "02"],
    [keyOf("b"), "03"],
  ]);
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["a1111", `0x${LONG}`],
    ["a1112", "0x02"],
    ["b", "0x03"],
    ["c", undefined],
    ["a1113", undefined],
    ["b01", undefined],
    ["a2", undefined],
  ];
  for (const [digits, expected] of cases) {
    const key = keyOf(digits);
    const proof = await nodesOnPath(trie, key);
    assert.equal(read(trie, key, proof), expected, digits);
    isRefused(trie, key, proof.slice(0, -1), `${digits}: too short`);
    isRefused(trie, key, proof.slice(1), `${digits}: without the root`);
    isRefused(trie, key, [...proof, proof.at(-1) ?? "0xc0"], `${digits}: surplus`);
    isRefused(trie, key, [], `${digits}: nothing`);
  }
});

test("a node below 32 bytes lies inside its parent, and may be repeated in the list", async () => {
  const trie = await trieOf([
    [lateKey("abc1"), "01"],
    [lateKey("abc2"), "02"],
    [keyOf("f"), LONG],
  ]);
  const key = lateKey("abc2");
  const [bare, repeated] = [await nodesOnPath(trie, key), await nodesOnPath(trie, key, true)];
  assert.ok(bare.length < repeated.length);
  for (const proof of [bare, repeated]) {
    assert.equal(read(trie, key, proof), "0x02");
  }
  const absent = lateKey("abc3");
  assert.equal(read(trie, absent, await nodesOnPath(trie, absent)), undefined);
  isRefused(trie, key, [...repeated, repeated.at(-1) ?? "0xc0"]);
});

test("the empty trie has no value, and no nodes", async () => {
  const trie = await trieOf([]);
  for (const proof of [[], ["0x80"], ["0x"]] as const) {
    assert.equal(read(trie, keyOf("a"), proof), undefined);
  }
  isRefused(trie, keyOf("a"), ["0xc0"]);
  isRefused(await trieOf([[keyOf("a"), "01"]]), keyOf("a"), ["0x80"]);
});

test("empty nodes in the list prove nothing, and are passed over", async () => {
  const trie = await trieOf([
    [keyOf("a"), LONG],
    [keyOf("b"), LONG],
  ]);
  const proof = await nodesOnPath(trie, keyOf("c"));
  assert.equal(read(trie, keyOf("c"), [...proof, "0x", "0x80"]), undefined);
});

/** The root node of a proof that has only this node. */
const ofNode = (node: Uint8Array, key: Uint8Array): Uint8Array | undefined =>
  new TrieProofs().read(keccak256(node), key, [formatData(node)]);

const HEX = (digits: string): Uint8Array => parseData(`0x${digits}`);
const EMPTY = HEX("");
const PATH = `20${"a0".padEnd(64, "0")}`;

test("a node of another form is refused, even if its hash is right", () => {
  const key = keyOf("a");
  const list = (...items: readonly Uint8Array[]) => encodeList(items.map(encodeBytes));
  const value = HEX("01");
  assert.deepEqual(ofNode(list(HEX(PATH), value), key), value);
  const branch = (own: Uint8Array, child = EMPTY) => list(...Array.from({ length: 16 }, () => child), own);
  assert.equal(ofNode(branch(EMPTY), key), undefined);
  const inline = encodeList([encodeBytes(HEX("3a")), encodeBytes(HEX("01".repeat(31)))]);
  const wrong: Readonly<Record<string, Uint8Array>> = {
    "a value in a branch": branch(value),
    "a branch of 16": list(...Array.from({ length: 16 }, () => EMPTY)),
    "an empty path": list(EMPTY, value),
    "a flag above 3": list(HEX("40"), value),
    "a padding that is not zero": list(HEX(`21${PATH.slice(2)}`), value),
    "a leaf without a value": list(HEX(PATH), EMPTY),
    "a leaf with a short path": list(HEX("20a0"), value),
    "an extension without a path": list(HEX("00"), HEX("11".repeat(32))),
    "a value in an extension": list(HEX("1a"), value),
    "an extension of the whole key": list(HEX(`00${PATH.slice(2)}`), HEX("11".repeat(32))),
    "a list as a value": encodeList([encodeBytes(HEX(PATH)), encodeList([])]),
    "a list as a path": encodeList([encodeList([]), encodeBytes(value)]),
    "a string": encodeBytes(HEX("aa".repeat(40))),
    "three items": list(HEX(PATH), value, EMPTY),
    "bytes after the list": HEX(`${formatData(list(HEX(PATH), value)).slice(2)}00`),
    "an item that is longer than the node": HEX("c3a00101"),
    "a length in more bytes than needed": HEX("f80120"),
    "one byte with a prefix": HEX("c2810100"),
    "a long node inside its parent": encodeList([
      ...Array.from({ length: 10 }, () => encodeBytes(EMPTY)),
      inline,
      ...Array.from({ length: 6 }, () => encodeBytes(EMPTY)),
    ]),
  };
  for (const [name, node] of Object.entries(wrong)) {
    assert.throws(() => ofNode(node, key), WrongProof, name);
  }
});
