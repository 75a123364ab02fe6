import assert from "node:assert/strict";
import { test } from "node:test";
import { proxyOf } from "./proxies.ts";

test("a proxy without its binary, and an unknown one, are not found", () => {
  assert.deepEqual(
    [proxyOf("erpc", undefined), proxyOf("other", undefined), proxyOf("", undefined)],
    [undefined, undefined, undefined],
  );
});
