import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { HeadPrefetch } from "../../src/cache/headPrefetch.ts";
import type { HeadChange, Heads } from "../../src/core/heads.ts";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";

const { log } = createTelemetry({ level: "silent" });

const requestsOf = ({ latest }: Heads) => {
  const at = (canonicalParams: string, blockField: RpcRequest["blockField"]) =>
    createRequest({ retention: "recent", block: latest, canonicalParams, ...(blockField && { blockField }) });
  return { receipts: at("receipts", "firstBlockHash"), block: at("block", "hash"), fullBlock: at("full", "hash") };
};

const changeTo = (latest: number): HeadChange => ({ heads: createHeads({ latest }), from: [], to: [blockOf(latest)] });

/** Returns the parts of block 11 that are prefetched after requests at block 10, `agoMs` before. */
const fetchedAfter = (
  t: TestContext,
  requested: readonly ("receipts" | "block" | "fullBlock")[],
  agoMs: number,
): string[] => {
  let nowMs = 1_000_000;
  t.mock.method(performance, "now", () => nowMs);
  const fetched: string[] = [];
  const source = countingSource(({ canonicalParams }) => {
    fetched.push(canonicalParams);
    if (fetched.length === 1) {
      throw new Error("the first fails, the others go on");
    }
    return createResponse("{}");
  });
  const heads = createHeads({ latest: 10 });
  const warm = new HeadPrefetch(source, { requestsOf, contextOf: (head) => createContext({ heads: head }), log });
  for (const name of requested) {
    Promise.try(() => warm.request(requestsOf(heads)[name], createContext({ heads }))).catch(() => {});
  }
  fetched.length = 0;
  nowMs += agoMs;
  warm.onChange({ ...changeTo(10), to: [] });
  warm.onChange(changeTo(11));
  t.mock.restoreAll();
  return fetched;
};

test("receipts and block of a new head are prefetched if clients read the newest block in the last 30 s", (t) => {
  assert.deepEqual(fetchedAfter(t, ["receipts"], 29_000), ["receipts", "block"]);
  assert.deepEqual(fetchedAfter(t, ["receipts"], 31_000), []);
  assert.deepEqual(fetchedAfter(t, [], 0), []);
});

test("the block is prefetched in the requested forms", (t) => {
  assert.deepEqual(fetchedAfter(t, ["fullBlock"], 0), ["receipts", "full"]);
  assert.deepEqual(fetchedAfter(t, ["block", "fullBlock"], 0), ["receipts", "block", "full"]);
});

test("reads of state at the newest block prefetch nothing", async (t) => {
  t.mock.method(performance, "now", () => 1_000_000);
  const source = countingSource(() => createResponse("{}"));
  const heads = createHeads({ latest: 10 });
  const warm = new HeadPrefetch(source, { requestsOf, contextOf: (head) => createContext({ heads: head }), log });
  await warm.request(createRequest({ method: "eth_getBalance", block: heads.latest }), createContext({ heads }));
  assert.equal(source.requests, 1);
  warm.onChange(changeTo(11));
  assert.equal(source.requests, 1);
});
