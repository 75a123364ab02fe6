import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { BatchLimit, isBatchRefusal } from "../../src/nodes/sendLimits.ts";

const createLimit = (maxCalls = 50) => {
  const time = { ms: 1_000 };
  return { time, limit: new BatchLimit(maxCalls, () => time.ms) };
};
const refusal = (message: string): NodeError => new NodeError("other", "node1", message);

test("a refusal halves the size for ten minutes", () => {
  const { time, limit } = createLimit();
  limit.recordRefusal(40, refusal("batch too large"));
  assert.equal(limit.calls, 20);
  limit.recordRefusal(20, refusal("batch too large"));
  assert.equal(limit.calls, 10);
  limit.recordRefusal(40, refusal("batch too large"));
  assert.equal(limit.calls, 10, "the answer to an earlier batch raises nothing");
  time.ms += 600_000;
  assert.equal(limit.calls, 50);
});

test("a node without batches gets single calls at once", () => {
  for (const message of ["batch requests are not supported", "Batch calls disabled", "batching is not allowed"]) {
    const { limit } = createLimit();
    limit.recordRefusal(40, refusal(message));
    assert.equal(limit.calls, 1, message);
  }
});

test("a late batch halves the size for a minute, a batch without a response stops batches for a second", () => {
  const { time, limit } = createLimit(8);
  limit.recordLate(8);
  assert.equal(limit.calls, 4);
  limit.recordFailure();
  assert.equal(limit.calls, 1);
  time.ms += 1_000;
  assert.equal(limit.calls, 4);
  time.ms += 59_000;
  assert.equal(limit.calls, 8);
});

test("rate limits, bills and lost connections are no refusals of a batch", () => {
  const kinds = ["rateLimited", "billing", "unreachable", "timeout"] as const;
  for (const kind of kinds) {
    assert.equal(isBatchRefusal(new NodeError(kind, "node1", kind)), false, kind);
  }
  for (const kind of ["other", "tooLarge", "invalidAnswer"] as const) {
    assert.equal(isBatchRefusal(new NodeError(kind, "node1", kind)), true, kind);
  }
});
