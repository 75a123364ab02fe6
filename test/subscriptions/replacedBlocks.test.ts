import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { RpcSource } from "../../src/core/rpcSource.ts";
import { parentHashOf } from "../../src/methods/ownBlockReads.ts";
import { LocalFilters } from "../../src/subscriptions/localFilters.ts";
import { PolledFilters } from "../../src/subscriptions/polledFilters.ts";
import { createSplit, readLogs } from "../logs/askLogs.ts";
import { fakeHeads } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createMemoryStore } from "../logs/memoryStore.ts";
import { createContext, createResponse } from "../support/builders/request.ts";
import { at, chain, createReplica, fork, MAX_BYTES, missing } from "./filterReplica.ts";

/** Answers reads of blocks by hash. The first error of the list is thrown instead, once. */
const createBlockReads = (errors: NodeError[]): RpcSource => ({
  request: async ({ params }) => {
    const error = errors.shift();
    if (error !== undefined) {
      throw error;
    }
    const block = [...chain, ...fork].find(({ hash }) => hash === (params as readonly unknown[])[0]);
    return createResponse(JSON.stringify(block ? { hash: block.hash, parentHash: block.parentHash } : null));
  },
});

/** No poll of these tests needs a block by number. */
const readsOf = (reads: RpcSource) => ({
  ...{ parentHashOf: parentHashOf(reads), blocksBelow: async () => [], store: createMemoryStore() },
});

for (const kind of ["timeout", "rateLimited", "unreachable", "otherBranch", "unverified"] as const) {
  test(`a poll fails if a replaced block cannot be read now (${kind}), and the next poll has all events`, async () => {
    const node = createFakeLogNode({ chain });
    const reads = createBlockReads([new NodeError(kind, "node", `the node fails: ${kind}`)]);
    const local = new LocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES });
    const filters = new PolledFilters({ logs: createSplit([node]), ...readsOf(reads), local });
    const short = createContext({ heads: fakeHeads(chain, { latest: 51, ring: 2 }), clientId: "client" });
    const id = await filters.newBlockFilter(short);
    await assert.rejects(filters.changes(id, at(fork, 52)), { message: `the node fails: ${kind}` });
    assert.deepEqual(
      await readLogs(await filters.changes(id, at(fork, 52))),
      fork.slice(48, 53).map(({ hash }) => hash),
    );
  });
}

test("a filter is removed if no node has a replaced block, so that blocks below it may be replaced too", async () => {
  const node = createFakeLogNode({ chain });
  const unknown = new NodeError("missingData", "node", "header not found");
  for (const errors of [[unknown], undefined]) {
    const reads = errors ? createBlockReads(errors) : { request: async () => createResponse("null") };
    const local = new LocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES });
    const filters = new PolledFilters({ logs: createSplit([node]), ...readsOf(reads), local });
    const short = createContext({ heads: fakeHeads(chain, { latest: 51, ring: 2 }), clientId: "client" });
    const id = await filters.newBlockFilter(short);
    await assert.rejects(filters.changes(id, at(fork, 52)), missing);
    assert.equal(await filters.uninstall(id), false);
  }
});

test("each block is cached once, although polls alternate between the newest view and one that is behind", async () => {
  const written: string[] = [];
  const store = createMemoryStore();
  const { filters } = createReplica({}, { ...store, set: (key) => written.push(key) });
  for (const latest of [50, 51, 52]) {
    await filters.newBlockFilter(at(chain, latest));
    await filters.newBlockFilter(at(chain, latest - 5));
    await filters.newBlockFilter(at(chain, latest));
  }
  assert.deepEqual(
    written.sort(),
    chain
      .slice(41, 53)
      .map(({ hash }) => `block:${hash}`)
      .sort(),
  );
});
