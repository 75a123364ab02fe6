import assert from "node:assert/strict";
import { test } from "node:test";
import { isCharged } from "../../../src/access/payment/quote.ts";
import { NodeError } from "../../../src/core/node.ts";
import { CODES, invalidParams, RpcError, unavailable, upstreamTimeout } from "../../../src/jsonrpc/rpcError.ts";

test("an error costs the price of its call only if the client caused it", () => {
  const charged = [
    invalidParams("x"),
    new RpcError(CODES.INVALID_REQUEST, "x"),
    new RpcError(3, "execution reverted"),
    new RpcError(CODES.NOT_CONFIRMED, "was added to the mempool but wasn't confirmed within 6000ms."),
    new NodeError("revert", "n", "execution reverted", { code: -32000 }),
    new NodeError("rejected", "n", "nonce too low", { code: -32000 }),
    new NodeError("invalidParams", "n", "invalid argument", { code: -32602 }),
    new NodeError("executionFailed", "n", "out of gas", { code: -32000 }),
  ];
  const free = [
    unavailable("x"),
    upstreamTimeout("x"),
    new RpcError(CODES.INTERNAL, "Internal error"),
    new RpcError(CODES.METHOD_NOT_FOUND, "x"),
    new RpcError(CODES.RATE_LIMITED, "x", { status: 429 }),
    new RpcError(CODES.RESPONSE_TOO_LARGE, "x"),
    new RpcError(CODES.SERVER, "header not found"),
    new NodeError("unauthorized", "n", "x", { code: -32602 }),
    new NodeError("other", "n", "x", { code: -32603 }),
    new NodeError("other", "n", "x", { code: -32600 }),
    new NodeError("tooLarge", "n", "block range is too wide", { code: -32602 }),
    new NodeError("tagUnsupported", "n", "safe block not found", { code: -32602 }),
    new NodeError("missingData", "n", "pruned", { code: -32602 }),
    new NodeError("missingData", "n", "missing trie node", { code: -32000 }),
  ];
  assert.deepEqual(
    charged.filter((error) => !isCharged(error)),
    [],
  );
  assert.deepEqual(free.filter(isCharged), []);
});
