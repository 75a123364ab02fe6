import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogsRefusal } from "../../src/core/node.ts";
import { errorKind, logsRefusal } from "../../src/nodes/errorKind.ts";

const refusalOf = (message: string, code = -32000): LogsRefusal | undefined =>
  logsRefusal(errorKind(code, message, 200, false), message);

/** Messages of providers (docs/reference/providers.md, Log ranges and results), with numbers in their notation. */
const MESSAGES: readonly (readonly [string, LogsRefusal])[] = [
  [
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x64, 0xc8]",
    "size",
  ],
  [
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x64, 0x6d]. Upgrade to PAYG for expanded block range.",
    "width",
  ],
  ["Query timeout exceeded. Consider reducing your block range", "size"],
  ["query returned more than 10000 results. Try with this block range [0x64, 0xC8].", "size"],
  ["query timeout exceeded", "size"],
  ["range 20000 exceeds limit of 10000", "width"],
  ["This query contains 6000 filters. The current limit is 5000.", "lists"],
  ["eth_getLogs is limited to a 10,000 range", "width"],
  ["please limit the query to at most 1000 blocks", "width"],
  ["block range too large", "width"],
  ["eth_getLogs requests are limited to a 100 range", "width"],
  ["Block range limit exceeded. See more details at https://docs.example/limits#evm-range-limits", "width"],
  ["block range is too wide", "width"],
  ["maximum [from, to] blocks distance: 1000", "width"],
  ["ranges over 10000 blocks are not supported on freetier", "width"],
  ["query returns too many logs, narrow your filter: 20000", "size"],
  ["query exceeds max results 20000", "size"],
  ["requested too many blocks from 1 to 4000, maximum is set to 2048", "width"],
  ["exceed maximum block range: 50000", "width"],
  ["eth_getLogs is limited to 0 - 50 blocks range", "width"],
  ["response size should not greater than 10000000 bytes", "size"],
  ["exceeds the range allowed for your plan (4000 > 1000)", "width"],
  ["limited to 1024 block", "width"],
  ["Max range: 800", "width"],
  ["Maximum allowed number of requested blocks is 1000", "width"],
  ["too wide blocks range, the limit is 100", "width"],
  ["eth_getLogs range is too large, max is 1k blocks", "width"],
  ["query must be smaller than size 1024", "size"],
  ["query exceeds max block range 100000", "width"],
  ["query exceeds max results 20000, retry with the range 100-200", "size"],
  ["Response is too big Exceeded max limit of 167772160", "size"],
  ["Too many logs requested. Max logs per response is 20000.", "size"],
  ["maximum of 1000 blocks per logs request, see Receipt.MaxBlockDepth", "width"],
  ["logs matched by query exceeds limit of 10000", "size"],
  ["block range is too large", "width"],
  ["backend response too large", "size"],
  ["query exceeds max results", "size"],
  ["allowed block range threshold exceeded", "width"],
  ["block range is larger than max block range", "width"],
  ["block range is too wide (maximum 1024)", "width"],
  ["up to a 1000 block range", "width"],
  ["block range greater than 500 max", "width"],
  ["block range exceeds 1000", "width"],
  ["exceed max block range: 5000", "width"],
  ["block range exceeds 0x3e8", "width"],
  ["request timed out", "size"],
  ["exceed max addresses or topics per search position", "lists"],
  ["exceed max topics", "lists"],
];

test("every provider's message says whether the blocks, the lists or the logs were too large", () => {
  for (const [message, expected] of MESSAGES) {
    assert.equal(refusalOf(message), expected, message);
  }
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
    assert.equal(refusalOf(message, -32005), undefined, message);
  }
});
