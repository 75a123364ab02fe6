import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, fakeAddress, fakeHeads, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, type FakeLogNodeOptions, nodeError } from "./fakeLogNode.ts";

const BLOCKS = 300;
const FINALIZED = 100;
const chain = createFakeChain(
  Array.from({ length: BLOCKS }, () => [{ address: fakeAddress(1), topics: [], data: "0x12" as const }]),
);
const branch = createFakeChain(
  chain.slice(200).map(({ logs }) => logs),
  { base: chain.slice(0, 200), fork: "other" },
);
/** The same branch without logs: only its blocks show that it is another one. */
const silentBranch = createFakeChain(
  chain.slice(200).map(() => []),
  { base: chain.slice(0, 200), fork: "silent" },
);
const heads = fakeHeads(chain, { finalized: FINALIZED });
const RECENT = range(250, 299);
const EXPECTED = plainScan(chain, ANY, RECENT);
/** Shorter than a suspension, and longer than all retries. */
const TIMEOUT_MS = 2_000;

const ask = async (...nodes: readonly FakeLogNodeOptions[]) => {
  const context = createContext({ heads, deadlineMs: performance.now() + TIMEOUT_MS });
  return readLogs(await createSplit(nodes.map(createFakeLogNode)).request(ANY, RECENT, context));
};
const suspended = { name: "suspended", chain, usable: () => false };

test("a suspended node is not waited for while the other nodes are on another branch", async () => {
  for (const other of [branch, silentBranch]) {
    const error = { kind: "otherBranch", status: 503 };
    await assert.rejects(ask({ chain: other }, { chain: other }, suspended), error);
  }
});

test("a suspended node is not waited for while the other nodes are behind", async () => {
  await assert.rejects(ask({ chain, head: 298 }, suspended), { message: /^No node has the logs/, status: 503 });
});

test("a node of the last resort is asked while the other nodes are on another branch", async () => {
  assert.deepEqual(await ask({ chain: branch }, { chain, available: () => false }), EXPECTED);
});

test("a node of the last resort is asked if no other node can have the logs", async () => {
  const onLogs = () => nodeError("history has been pruned", -32000, "missingData");
  assert.deepEqual(await ask({ chain, onLogs }, { chain, available: () => false }), EXPECTED);
});
