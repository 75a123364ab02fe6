import assert from "node:assert/strict";
import { test } from "node:test";
import { createMethodRules } from "../../src/access/methodRules.ts";

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
