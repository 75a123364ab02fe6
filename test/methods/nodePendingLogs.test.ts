import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { createCall } from "../../src/jsonrpc/call.ts";
import { nodePendingLogs } from "../../src/methods/nodePendingLogs.ts";
import { createResponse } from "../support/builders/request.ts";
import { a, context, createMethodChain, heads } from "./requestOf.ts";

const ANY = { addresses: [], topics: [] };
const HASH = `0x${"cc".repeat(32)}`;
const quantity = (value: bigint) => `0x${value.toString(16)}`;
const next = heads.latest.number + 1n;

/** The parent of each node's pending block. Both have one log. Reads alternate between the nodes unless one is requested. */
const createReads = (parents: Readonly<Record<string, unknown>>) => {
  const names = Object.keys(parents);
  let reads = 0;
  return {
    request: async ({ method, onlyNode }: RpcRequest) => {
      const node = onlyNode ?? names[reads++ % names.length] ?? "";
      const value =
        method === "eth_getLogs"
          ? [{ address: a, topics: [], data: "0x", blockNumber: quantity(next), transactionHash: HASH }]
          : { number: quantity(next), parentHash: parents[node] };
      return createResponse(JSON.stringify(value), { node });
    },
  };
};

const read = (parents: Readonly<Record<string, unknown>>) => {
  const chain = createMethodChain({ reads: createReads(parents) });
  return nodePendingLogs({ chain, context, call: createCall("eth_getLogs", []) }, ANY, heads);
};

const isOtherBranch = (error: unknown): boolean => error instanceof NodeError && error.kind === "otherBranch";

test("the pending block is read from the node of the pending logs", async () => {
  assert.equal((await read({ first: heads.latest.hash, second: HASH })).length, 1);
  await assert.rejects(read({ first: HASH, second: heads.latest.hash }), isOtherBranch);
});

for (const [name, parentHash] of [
  ["no", undefined],
  ["a null", null],
  ["a zero", `0x${"0".repeat(64)}`],
] as const) {
  test(`logs of a pending block with the next number and ${name} parentHash are returned`, async () => {
    assert.equal((await read({ node: parentHash })).length, 1);
  });
}
