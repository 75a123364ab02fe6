import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { parseTooLarge, type TooLarge } from "../../src/logs/rangeTooLarge.ts";

const parse = (message: string, code = -32000, data?: unknown): TooLarge | undefined =>
  parseTooLarge(new NodeError("other", "node", message, { code, data }));

/** Messages of providers (docs/reference/providers.md, Log ranges and results), with numbers in their notation. */
const MESSAGES: readonly (readonly [string, TooLarge, unknown?])[] = [
  [
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x64, 0xc8]",
    { what: "results", range: { from: 100n, to: 200n } },
  ],
  [
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x64, 0x6d]. Upgrade to PAYG for expanded block range.",
    { what: "blocks", limit: 10, range: { from: 100n, to: 109n } },
  ],
  ["Query timeout exceeded. Consider reducing your block range", { what: "results" }],
  [
    "query returned more than 10000 results. Try with this block range [0x64, 0xC8].",
    { what: "results", limit: 10_000, range: { from: 100n, to: 200n } },
  ],
  ["query timeout exceeded", { what: "time" }],
  ["range 20000 exceeds limit of 10000", { what: "blocks", limit: 10_000 }],
  ["This query contains 6000 filters. The current limit is 5000.", { what: "addresses", limit: 5_000 }],
  ["eth_getLogs is limited to a 10,000 range", { what: "blocks", limit: 10_000 }],
  ["please limit the query to at most 1000 blocks", { what: "blocks", limit: 1_000 }],
  ["block range too large", { what: "blocks" }],
  ["eth_getLogs requests are limited to a 100 range", { what: "blocks", limit: 100 }],
  ["Block range limit exceeded. See more details at https://docs.example/limits#evm-range-limits", { what: "blocks" }],
  ["block range is too wide", { what: "blocks" }],
  ["maximum [from, to] blocks distance: 1000", { what: "blocks", limit: 1_000 }],
  ["ranges over 10000 blocks are not supported on freetier", { what: "blocks", limit: 10_000 }],
  ["query returns too many logs, narrow your filter: 20000", { what: "results", limit: 20_000 }],
  ["query exceeds max results 20000", { what: "results", limit: 20_000 }],
  ["requested too many blocks from 1 to 4000, maximum is set to 2048", { what: "blocks", limit: 2_048 }],
  ["exceed maximum block range: 50000", { what: "blocks", limit: 50_000 }],
  ["eth_getLogs is limited to 0 - 50 blocks range", { what: "blocks", limit: 50 }],
  ["response size should not greater than 10000000 bytes", { what: "bytes", limit: 10_000_000 }],
  ["exceeds the range allowed for your plan (4000 > 1000)", { what: "blocks", limit: 1_000 }],
  ["limited to 1024 block", { what: "blocks", limit: 1_024 }],
  ["Max range: 800", { what: "blocks", limit: 800 }],
  ["Maximum allowed number of requested blocks is 1000", { what: "blocks", limit: 1_000 }],
  ["too wide blocks range, the limit is 100", { what: "blocks", limit: 100 }],
  ["eth_getLogs range is too large, max is 1k blocks", { what: "blocks", limit: 1_000 }],
  ["query must be smaller than size 1024", { what: "results", limit: 1_024 }],
  ["query exceeds max block range 100000", { what: "blocks", limit: 100_000 }],
  [
    "query exceeds max results 20000, retry with the range 100-200",
    { what: "results", limit: 20_000, range: { from: 100n, to: 200n } },
  ],
  ["Response is too big", { what: "bytes", limit: 167_772_160 }, "Exceeded max limit of 167772160"],
  ["Too many logs requested. Max logs per response is 20000.", { what: "results", limit: 20_000 }],
  ["maximum of 1000 blocks per logs request, see Receipt.MaxBlockDepth", { what: "blocks", limit: 1_000 }],
  ["logs matched by query exceeds limit of 10000", { what: "results", limit: 10_000 }],
  ["block range is too large", { what: "blocks" }],
  ["backend response too large", { what: "bytes" }],
  ["query exceeds max results", { what: "results" }],
  ["allowed block range threshold exceeded", { what: "blocks" }],
  ["block range is larger than max block range", { what: "blocks" }],
  ["block range is too wide (maximum 1024)", { what: "blocks", limit: 1_024 }],
  ["up to a 1000 block range", { what: "blocks", limit: 1_000 }],
  ["block range greater than 500 max", { what: "blocks", limit: 500 }],
  ["block range exceeds 1000", { what: "blocks", limit: 1_000 }],
  ["exceed max block range: 5000", { what: "blocks", limit: 5_000 }],
  ["block range exceeds 0x3e8", { what: "blocks", limit: 1_000 }],
  ["request timed out", { what: "time" }],
  ["exceed max addresses or topics per search position", { what: "addresses" }],
  ["exceed max topics", { what: "topics" }],
];

test("the limit and the proposed range are read from every provider's message", () => {
  for (const [message, expected, data] of MESSAGES) {
    assert.deepEqual(parse(message, -32000, data), expected, message);
  }
});

test("a proposed range is also read from the error's data", () => {
  const data = { from: "0x64", to: "0xC8", limit: 10_000 };
  assert.deepEqual(parse("query returned more than 10000 results", -32005, data), {
    what: "results",
    limit: 10_000,
    range: { from: 100n, to: 200n },
  });
});

test("errors of rates, plans, pruned data and invalid parameters do not mean that a range is too large", () => {
  const others = [
    "Too many requests, reason: call rate limit exhausted",
    "daily request count exceeded, request rate limited",
    "Your app has exceeded its compute units per second capacity",
    "limit exceeded: 100 requests per second",
    "Archive requests require a personal token",
    "You've reached the free tier limit",
    "Monthly capacity limit exceeded",
    "invalid block range params",
    "block range extends beyond current head block: requested 10, head 5",
    "pending logs are not supported",
    "history has been pruned for this block range",
    "invalid argument 0: hex string without 0x prefix",
    "limit exceeded",
  ];
  for (const message of others) {
    assert.equal(parse(message, -32005), undefined, message);
  }
});
