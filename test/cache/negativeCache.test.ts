import assert from "node:assert/strict";
import { test } from "node:test";
import { cached } from "../../src/cache/cached.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { NegativeCache, scanTransactionHashes } from "../../src/cache/negativeCache.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createHeads, hashOf } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { createStated } from "../support/builders/statedValues.ts";

const HASHES = [hashOf(1, 1), hashOf(2, 2), hashOf(3, 3)];
const find = (value: unknown): Set<string> => scanTransactionHashes(Buffer.from(JSON.stringify(value)));

test("transaction hashes are read from a block with hashes, with full transactions, and from receipts", () => {
  assert.deepEqual(find({ number: "0x1", transactions: HASHES, uncles: [hashOf(9)] }), new Set(HASHES));
  assert.deepEqual(find({ transactions: HASHES.map((hash) => ({ type: "0x2", hash })) }), new Set(HASHES));
  assert.deepEqual(find(HASHES.map((transactionHash) => ({ transactionHash, logs: [] }))), new Set(HASHES));
  assert.deepEqual(find({ transactions: [] }), new Set());
});

test("a null is not cached for a transaction that a cached block lists", async () => {
  const telemetry = createTelemetry({ level: "silent" });
  const heads = createHeads({ latest: 10 });
  const negativeCache = new NegativeCache();
  const block = { number: 10n, hash: hashOf(10) };
  const node = countingSource(({ retention }) =>
    retention === "recent"
      ? createResponse(JSON.stringify({ transactions: HASHES }), { verified: true, block })
      : createResponse("null"),
  );
  const memory = new MemoryStore(1 << 20, telemetry);
  const source = cached(node, {
    chain: "test",
    keys: { prefix: "" },
    memory,
    stores: [],
    negativeCache,
    stated: createStated(),
    telemetry,
  });
  await source.request(createRequest({ retention: "recent", block, blockField: "hash" }), createContext({ heads }));
  const { status } = await source.request(
    createRequest({ retention: "byTransaction", params: [HASHES[1]] }),
    createContext({ heads }),
  );
  assert.equal(status.stored, false);
  assert.equal(negativeCache.isExpected(HASHES[1] ?? "", heads), true);
});
