import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadPrefetch } from "../../src/cache/headPrefetch.ts";
import type { HeadChange, Heads } from "../../src/core/heads.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";

const { log } = createTelemetry({ level: "silent" });

const requestsOf = ({ latest }: Heads) => {
  const at = (method: string, canonicalParams: string) =>
    createRequest({ method, retention: "recent", block: latest, canonicalParams });
  return {
    receipts: at("eth_getBlockReceipts", "receipts"),
    block: at("eth_getBlockByNumber", "block"),
    fullBlock: at("eth_getBlockByNumber", "full"),
  };
};

const changeTo = (latest: number): HeadChange => ({ heads: createHeads({ latest }), from: [], to: [blockOf(latest)] });

/** Returns the parts of blocks 11 and 12 that are prefetched after requests at block 10. */
const fetchedAfter = (requested: readonly ("receipts" | "block" | "fullBlock")[]): string[][] => {
  let fetched: string[] = [];
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
  const prefetched = (change: HeadChange): string[] => {
    fetched = [];
    warm.onChange(change);
    return fetched;
  };
  assert.deepEqual(prefetched({ ...changeTo(10), to: [] }), []);
  return [prefetched(changeTo(11)), prefetched(changeTo(12))];
};

test("what clients read of a block is prefetched of the next one, and not of the one after that", () => {
  assert.deepEqual(fetchedAfter(["receipts"]), [["receipts"], []]);
  assert.deepEqual(fetchedAfter(["fullBlock"]), [["full"], []]);
  assert.deepEqual(fetchedAfter(["fullBlock", "block", "receipts"]), [["receipts", "block", "full"], []]);
  assert.deepEqual(fetchedAfter([]), [[], []]);
});

test("reads of state at the newest block are not kept until the next one", async () => {
  const source = countingSource(() => createResponse("{}"));
  const heads = createHeads({ latest: 10 });
  let heldReads = 0;
  const countReads = (head: Heads) => {
    heldReads++;
    return requestsOf(head);
  };
  const contextOf = (head: Heads) => createContext({ heads: head });
  const warm = new HeadPrefetch(source, { requestsOf: countReads, contextOf, log });
  await warm.request(createRequest({ method: "eth_getBalance", block: heads.latest }), createContext({ heads }));
  assert.equal(source.requests, 1);
  warm.onChange(changeTo(11));
  assert.deepEqual([source.requests, heldReads], [1, 0]);
});
