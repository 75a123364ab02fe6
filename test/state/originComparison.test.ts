import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockId } from "../../src/core/heads.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { type ComparedNode, majorityOf, OriginComparison, refutedBy } from "../../src/state/originComparison.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import type { ValueProvenance } from "../../src/state/store/valueStore.ts";
import { hashOf } from "../support/builders/heads.ts";
import { fetchedValues } from "../support/builders/nodeState.ts";
import { addressOf } from "../support/builders/stateModel.ts";

const KEY: StateKey = { field: "balance", address: addressOf(1), slot: undefined };
const BLOCK: BlockId = { number: 7n, hash: hashOf(7) };
const EARLIER: BlockId = { number: 4n, hash: hashOf(4) };

const say = (origin: string, value: string, node = origin) => ({ node, origin, value });

/** A value for all blocks, or one for each block. Undefined: the node does not respond. */
type Said = string | undefined | Readonly<Record<Hash, string>>;

const nodeOf = (name: string, said: Said, origin = name): ComparedNode => ({
  name,
  origin,
  available: true,
  reader: {
    unitsFor: () => 0,
    read: async () => fetchedValues(),
    fetch: async () => fetchedValues(),
    readSingly: async (keys, block) => {
      const value = typeof said === "object" ? said[block.hash] : said;
      return fetchedValues({ values: new Map(keys.flatMap((key) => (value === undefined ? [] : [[key, value]]))) });
    },
  },
});

const judge = async (
  nodes: readonly ComparedNode[],
  { known = "1", actual = "2", node = "a", source = undefined as ValueProvenance | undefined } = {},
  proven?: string,
) => {
  const comparison = new OriginComparison({ nodes: () => nodes, onSpent: () => undefined });
  const difference = { key: KEY, block: BLOCK, known, actual, node };
  return comparison.judge(await comparison.ask(difference, source), proven);
};

const givenBy = (node: string, from: BlockId | undefined = EARLIER): ValueProvenance => ({
  kind: "fetched",
  node,
  from,
});

test("a majority needs two origins and more than half of them", () => {
  const cases: readonly [string, readonly ReturnType<typeof say>[], string | undefined][] = [
    ["nobody", [], undefined],
    ["one", [say("a", "1")], undefined],
    ["two that agree", [say("a", "1"), say("b", "1")], "1"],
    ["two that disagree", [say("a", "1"), say("b", "2")], undefined],
    ["two against one", [say("a", "1"), say("b", "2"), say("c", "1")], "1"],
    ["two against two", [say("a", "1"), say("b", "2"), say("c", "1"), say("d", "2")], undefined],
    ["two against two others", [say("a", "1"), say("b", "2"), say("c", "1"), say("d", "3")], undefined],
    ["two nodes of one origin against one", [say("a", "1", "a1"), say("a", "1", "a2"), say("b", "2")], undefined],
    ["an origin that contradicts itself", [say("a", "1", "a1"), say("a", "2", "a2"), say("b", "1")], undefined],
  ];
  for (const [name, statements, expected] of cases) {
    assert.equal(majorityOf(statements), expected, name);
  }
});

test("a statement is refuted by two origins besides its own", () => {
  const [a, b, c] = [say("a", "1"), say("b", "2"), say("c", "2")];
  assert.deepEqual(refutedBy("2", [a, b, c], [a, b, c]), [a]);
  assert.deepEqual(refutedBy("2", [b, c], [say("b", "1")]), [], "one other origin");
  assert.deepEqual(refutedBy("2", [a, b, c], [a, a]), [a], "a node counts once");
});

test("a node that differs from two others is wrong, and the known value right", async () => {
  const nodes = [nodeOf("a", "2"), nodeOf("b", "1"), nodeOf("c", "1")];
  assert.deepEqual(await judge(nodes), { kind: "right", refuted: [say("a", "2")] });
});

test("a node that was wrong once is wrong, even if it is right when it is asked again", async () => {
  const nodes = [nodeOf("a", "1"), nodeOf("b", "1"), nodeOf("c", "1")];
  assert.deepEqual(await judge(nodes), { kind: "right", refuted: [say("a", "2")] });
});

test("with two origins nobody is wrong", async () => {
  const disagree = [nodeOf("a", "2"), nodeOf("b", "1")];
  const undecided = { kind: "undecided" };
  assert.deepEqual(await judge(disagree, { source: givenBy("b") }), undecided);
  const agree = [nodeOf("a", "2"), nodeOf("b", "2")];
  const wrong = { kind: "wrong", value: "2", cause: "node", refuted: [] };
  assert.deepEqual(await judge(agree, { source: givenBy("b", BLOCK) }), wrong);
  assert.deepEqual(await judge([nodeOf("a", "1"), nodeOf("b", "1")]), { kind: "right", refuted: [] });
});

test("a proof needs no other origin: each node with another value is wrong", async () => {
  const nodes = [nodeOf("a", "2"), nodeOf("b", "1")];
  const source = givenBy("b");
  assert.deepEqual(await judge(nodes, { source }, "1"), { kind: "right", refuted: [say("a", "2")] });
  const wrong = { kind: "wrong", value: "2", cause: "node", refuted: [say("b", "1")] };
  assert.deepEqual(await judge(nodes, { source }, "2"), wrong);
});

test("two nodes of one origin count once", async () => {
  const [liar1, liar2] = [nodeOf("a1", "2", "a"), nodeOf("a2", "2", "a")];
  const options = { node: "a1", source: givenBy("b") };
  assert.equal((await judge([liar1, liar2, nodeOf("b", "1")], options)).kind, "undecided");
  assert.deepEqual(await judge([liar1, liar2, nodeOf("b", "1"), nodeOf("c", "1")], options), {
    kind: "right",
    refuted: [say("a", "2", "a1")],
  });
});

test("nodes that do not respond have no vote", async () => {
  const alone = [nodeOf("a", "2"), nodeOf("b", undefined), { ...nodeOf("c", "1"), available: false }];
  assert.deepEqual(await judge(alone), { kind: "unanswered" });
  const three = [nodeOf("a", "2"), nodeOf("b", "1"), nodeOf("c", undefined)];
  assert.equal((await judge(three)).kind, "undecided");
});

test("the node that gave a wrong known value is wrong if the others had another value then", async () => {
  const honest = { [EARLIER.hash]: "2", [BLOCK.hash]: "2" };
  const nodes = (said: Said) => [nodeOf("a", honest), nodeOf("b", said), nodeOf("c", honest), nodeOf("d", honest)];
  const expected = { kind: "wrong", value: "2", cause: "node", refuted: [say("b", "1")] };
  assert.deepEqual(await judge(nodes("1"), { source: givenBy("b") }), expected, "it still lies");
  assert.deepEqual(await judge(nodes(honest), { source: givenBy("b") }), expected, "it is honest again");
  const unnamed: ValueProvenance = { kind: "fetched", node: undefined, from: EARLIER };
  assert.deepEqual(await judge(nodes("1"), { source: unnamed }), expected, "the giver is not known by name");
});

test("a known value that was right when it was given was missed by write sets", async () => {
  const honest = { [EARLIER.hash]: "1", [BLOCK.hash]: "2" };
  const nodes = [nodeOf("a", honest), nodeOf("b", honest), nodeOf("c", honest)];
  const missed = { kind: "wrong", value: "2", cause: "writeSets", refuted: [] };
  assert.deepEqual(await judge(nodes, { source: givenBy("b") }), missed);
  const written: ValueProvenance = { kind: "written", node: "b", from: EARLIER };
  assert.deepEqual(await judge(nodes, { source: written }), missed);
  const tooOld = await judge(nodes, { source: { kind: "fetched", node: "b", from: undefined } });
  assert.deepEqual(tooOld, { ...missed, cause: "tooOld" });
});

test("the origins take turns, and a value is compared with another origin than its own", () => {
  const nodes = [nodeOf("a1", "1", "a"), nodeOf("a2", "1", "a"), nodeOf("b", "1"), nodeOf("c", "1")];
  const comparison = new OriginComparison({ nodes: () => nodes, onSpent: () => undefined });
  const turns = Array.from({ length: 6 }, () => comparison.nextNode()?.name);
  assert.deepEqual(turns, ["a1", "b", "c", "a1", "b", "c"]);
  assert.equal(comparison.nodeBeside("a2")?.name, "b");
  assert.equal(comparison.nodeBeside("b")?.name, "a1");
  assert.equal(comparison.nodeBeside(undefined)?.name, "a1");
  assert.equal(comparison.hasSeveral, true);
  const single = new OriginComparison({ nodes: () => nodes.slice(0, 2), onSpent: () => undefined });
  assert.equal(single.hasSeveral, false);
  assert.equal(single.nodeBeside("a1")?.name, "a1", "a chain with one origin is compared with it");
});
