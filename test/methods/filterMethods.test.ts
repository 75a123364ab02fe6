import assert from "node:assert/strict";
import { test } from "node:test";
import type { Heads } from "../../src/core/heads.ts";
import { NodeError } from "../../src/core/node.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { createHeads } from "../support/builders/heads.ts";
import { callMethod, createMethodChain, heads } from "./requestOf.ts";

const bodyText = ({ body }: RpcResponse): string => Buffer.from(body as Uint8Array).toString();
const reads = { request: () => Promise.reject(new Error("no read of a node")) };

/** Creates a chain whose nodes have left the branch of `heads`, and a filter that was created one block below. */
const createReorganisedChain = async (refreshed: Heads) => {
  const views: string[] = [];
  const chain = createMethodChain({
    reads,
    refresh: async () => refreshed,
    logs: {
      request: async (_filter, _blocks, { view }) => {
        views.push(view.heads.latest.hash);
        if (view.heads === heads) {
          throw new NodeError("invalidAnswer", "node1", "The node left out the end of a range", { status: 503 });
        }
        return { body: Buffer.from("[]"), status: {} };
      },
    },
  });
  const created = await callMethod(chain, "eth_newFilter", [{ fromBlock: "0x1" }], {
    heads: createHeads({ latest: heads.latest.number - 1n, finalized: 50n, oldest: 40n }),
  });
  return { chain, views, id: JSON.parse(bodyText(created)) as unknown };
};

test("a poll of a filter is repeated in the new view after a reorganisation", async () => {
  const other = createHeads({ latest: 101n, finalized: 50n, oldest: 40n, fork: 1, forkedAt: 100 });
  const { chain, views, id } = await createReorganisedChain(other);
  assert.equal(bodyText(await callMethod(chain, "eth_getFilterChanges", [id])), "[]");
  assert.deepEqual(views, [heads.latest.hash, other.latest.hash]);
});

test("a poll fails if heads do not change, and the next poll starts at the same block", async () => {
  const { chain, views, id } = await createReorganisedChain(heads);
  for (let poll = 1; poll <= 2; poll++) {
    await assert.rejects(callMethod(chain, "eth_getFilterChanges", [id]), { status: 503 });
    assert.equal(views.length, poll);
  }
});
