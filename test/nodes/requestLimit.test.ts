import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestLimit } from "../../src/nodes/sendLimits.ts";

test("an overload halves the requests in flight once a second, and each round of responses adds one", () => {
  let nowMs = 0;
  const limit = new RequestLimit(240, () => nowMs);
  limit.recordOverload(1);
  assert.equal(limit.requests, 240, "a node that is not busy keeps its requests");
  limit.recordOverload(40);
  limit.recordOverload(40);
  assert.equal(limit.requests, 20);
  for (let round = 0; round < 2; round += 1) {
    for (let response = 0; response < 22; response += 1) {
      limit.recordResponse();
    }
  }
  assert.equal(limit.requests, 22);
  nowMs = 1_000;
  limit.recordOverload(22);
  assert.equal(limit.requests, 11);
  for (nowMs = 2_000; nowMs < 12_000; nowMs += 1_000) {
    limit.recordOverload(2);
  }
  assert.equal(limit.requests, 1);
  for (let response = 0; response < 40_000; response += 1) {
    limit.recordResponse();
  }
  assert.equal(limit.requests, 240);
});
