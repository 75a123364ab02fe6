import assert from "node:assert/strict";
import { test } from "node:test";
import { createMethodRules } from "../../src/access/methodRules.ts";

test("nothing given, nothing forbidden", () => {
  assert.equal(createMethodRules({}), undefined);
  assert.equal(createMethodRules({ deny: [] }), undefined);
});

test("names and beginnings are allowed, and what is denied wins", () => {
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
