import assert from "node:assert/strict";
import { test } from "node:test";
import { secondOrigin } from "../../src/cache/secondOrigin.ts";
import { NodeError } from "../../src/core/node.ts";
import type { RpcSource } from "../../src/core/rpcSource.ts";
import { createContext, createRequest, createResponse } from "../support/builders/request.ts";

const unused = () => assert.fail("it is not used");

test("a second origin has 1.5 s for a read, and the first response is returned if it has not responded then", async (t) => {
  t.mock.method(performance, "now", () => 0);
  const timesMs: number[] = [];
  const response = createResponse('"0x1"');
  const first: RpcSource = {
    request: async ({ excludedOrigins }, { deadlineMs }) => {
      timesMs.push(deadlineMs);
      if (excludedOrigins !== undefined) {
        throw new NodeError("timeout", "node2", "request timed out");
      }
      return response;
    },
  };
  const source = secondOrigin(first, {
    nodes: ["node1", "node2"].map((name) => ({
      ...{ name, origin: name, available: true, priority: 0 },
      ...{ send: unused, recordWrongAnswer: unused },
    })),
    agree: 2,
    verifier: { level: "off", verify: unused, hasReceipts: unused },
    negativeCache: { blockOf: unused },
    disagreements: { report: unused },
    receiptsOf: unused,
  });
  const request = createRequest({ block: { number: 1n, hash: "0x1" } });
  const agreed = await source.request(request, createContext({ deadlineMs: 30_000 }));
  assert.deepEqual(agreed, { ...response, isAgreed: false });
  assert.deepEqual(timesMs, [30_000, 1_500]);
});
