import assert from "node:assert/strict";
import { test } from "node:test";
import { createMethodLookup, createMethodRules } from "../../src/access/methodRules.ts";

test("without rules every method is allowed", () => {
  assert.equal(createMethodRules({}), undefined);
  assert.equal(createMethodRules({ deny: [] }), undefined);
});

test("rules match names and prefixes, and a denial has priority", () => {
  const isAllowed = createMethodRules({ allow: ["eth_*", "net_version"], deny: ["eth_getLogs", "eth_send*"] });
  for (const [method, expected] of [
    ["eth_call", true],
    ["net_version", true],
    ["net_versions", false],
    ["web3_sha3", false],
    ["eth_getLogs", false],
    ["eth_sendRawTransaction", false],
  ] as const) {
    assert.equal(isAllowed?.(method), expected, method);
  }
  assert.equal(createMethodRules({ allow: [] })?.("eth_call"), false);
});

test("a look-up finds the name, then the longest prefix", () => {
  const lookUp = createMethodLookup({ "*": 1, "debug_*": 2, "debug_trace*": 3, debug_traceCall: 0 });
  for (const [method, expected] of [
    ["debug_traceCall", 0],
    ["debug_traceBlockByHash", 3],
    ["debug_getRawBlock", 2],
    ["eth_call", 1],
  ] as const) {
    assert.equal(lookUp(method), expected, method);
  }
  assert.equal(createMethodLookup({ "debug_*": 2 })("eth_call"), undefined);
});
