import assert from "node:assert/strict";
import { test } from "node:test";
import { createAgreedFetch } from "../../src/cache/agreedFetch.ts";
import type { BlockId } from "../../src/core/heads.ts";
import { NodeError } from "../../src/core/node.ts";
import type { StateFetch } from "../../src/core/stateFetch.ts";
import { type Call, createCall } from "../../src/jsonrpc/call.ts";
import { hashOf } from "../support/builders/heads.ts";

const BLOCK: BlockId = { number: 7n, hash: hashOf(7) };
const call = (method: string): Call => createCall(method, [`0x${"11".repeat(20)}`, { blockHash: BLOCK.hash }]);
const CALLS = [call("eth_getBalance"), call("eth_call")];
const RIGHT = ["0x1", "0xaa"] as const;
const FORGED = ["0x2", "0xbb"] as const;
const DOWN = new NodeError("timeout", "", "request timed out");

type Said = readonly unknown[] | "down" | "hangs";

/** Nodes of these origins state these outcomes of CALLS. The first one is asked first. */
const createRig = (said: readonly Said[], { calls = CALLS, onHang = (_timeoutMs: number): void => undefined } = {}) => {
  const asked: string[] = [];
  const blamed: string[] = [];
  const disagreed: string[] = [];
  const timeouts: number[] = [];
  const nodes = said.map((each, index) => ({
    ...{ name: `node${index}`, origin: `origin${index}`, available: each !== "down" },
    recordWrongAnswer: () => void blamed.push(`node${index}`),
  }));
  const fetchFrom =
    (allowed: readonly (typeof nodes)[number][], timeoutMs: number): StateFetch =>
    async (wanted) => {
      const node = allowed.find(({ available }) => available);
      assert.ok(node);
      const values = said[nodes.indexOf(node)] ?? [];
      asked.push(`${node.name}: ${wanted.map(({ method }) => method).join()}`);
      if (typeof values === "string") {
        timeouts.push(timeoutMs);
        onHang(timeoutMs);
        return { outcomes: wanted.map(() => DOWN), node: node.name };
      }
      return { outcomes: wanted.map((each) => values[calls.indexOf(each)]), node: node.name };
    };
  const disagreements = { report: ({ method }: Call): void => void disagreed.push(method) };
  const agreed = createAgreedFetch({ nodes, agree: 2, timeoutMs: 5_000, fetchFrom, disagreements });
  return { read: () => agreed(calls), asked, blamed, disagreed, timeouts };
};

const BOTH = "eth_getBalance,eth_call";

test("two origins that agree are asked once each, and the values are confirmed", async () => {
  const { read, asked, blamed } = createRig([RIGHT, ["0x01", "0xAA"], FORGED]);
  assert.deepEqual(await read(), { outcomes: RIGHT, node: "node0", isAgreed: true });
  assert.deepEqual(asked, [`node0: ${BOTH}`, `node1: ${BOTH}`]);
  assert.deepEqual(blamed, []);
});

for (const liar of [0, 1]) {
  test(`two of three decide about what node ${liar} states`, async () => {
    const rig = createRig([0, 1, 2].map((index) => (index === liar ? FORGED : RIGHT)));
    const { outcomes, node, isAgreed } = await rig.read();
    assert.deepEqual(outcomes, RIGHT);
    // With values of several nodes, it is not known which of them gave each one.
    assert.deepEqual([node, isAgreed], [liar === 0 ? undefined : "node0", true]);
    assert.deepEqual(rig.blamed, [`node${liar}`]);
    assert.deepEqual(rig.disagreed, []);
  });
}

test("a third origin is asked only for what differs", async () => {
  const { read, asked, blamed } = createRig([RIGHT, [RIGHT[0], FORGED[1]], RIGHT]);
  assert.deepEqual((await read()).outcomes, RIGHT);
  assert.equal(asked.at(-1), "node2: eth_call");
  assert.deepEqual(blamed, [], "a call can depend on its node");
});

for (const [title, second] of [
  ["no other origin can be asked", "down"],
  ["the other one returns errors", [DOWN, DOWN]],
  ["the other one does not respond in time", "hangs"],
] as const) {
  test(`if ${title}, the value of one origin is returned, and is not confirmed`, async () => {
    const { read } = createRig([RIGHT, second]);
    assert.deepEqual(await read(), { outcomes: RIGHT, node: "node0", isAgreed: false });
  });
}

test("an execution, which reads several times, waits once for a second origin that does not respond", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const onHang = (timeoutMs: number): void => {
    nowMs += timeoutMs;
  };
  const rig = createRig([RIGHT, "hangs"], { onHang });
  for (let times = 0; times < 4; times++) {
    assert.deepEqual(await rig.read(), { outcomes: RIGHT, node: "node0", isAgreed: false });
  }
  assert.deepEqual(rig.timeouts, [1_500]);
  nowMs += 5_000;
  await rig.read();
  assert.deepEqual(rig.timeouts, [1_500, 1_500]);
});

test("an error of the first node is the outcome, and no other origin is asked for it", async () => {
  const { read, asked } = createRig([[DOWN, RIGHT[1]], RIGHT]);
  assert.deepEqual((await read()).outcomes, [DOWN, RIGHT[1]]);
  assert.equal(asked.at(-1), "node1: eth_call");
});

test("results that differ between nodes of different software are errors, and decide about nobody", async () => {
  const calls = [call("debug_traceCall"), call("eth_createAccessList")];
  const { read, asked, blamed, disagreed } = createRig([[{ a: 1 }, { b: 1 }], [{ a: 2 }, { b: 2 }], [{ a: 3 }]], {
    calls,
  });
  const { outcomes } = await read();
  assert.ok(outcomes[0] instanceof Error);
  assert.deepEqual(outcomes[1], { b: 1 }, "it predicts keys");
  assert.deepEqual(asked, [
    "node0: debug_traceCall,eth_createAccessList",
    "node1: debug_traceCall",
    "node2: debug_traceCall",
  ]);
  assert.deepEqual([...blamed, ...disagreed], []);
});

test("of a block, the hash alone is compared", async () => {
  const calls = [call("eth_getBlockByNumber")];
  const first = { hash: hashOf(3), size: "0x1" };
  const { read } = createRig([[first], [{ hash: hashOf(3), size: "0x2" }]], { calls });
  assert.deepEqual(await read(), { outcomes: [first], node: "node0", isAgreed: true });
});
