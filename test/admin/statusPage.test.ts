import assert from "node:assert/strict";
import { test } from "node:test";
import { statusPage } from "../../src/admin/statusPage.ts";

test("the page sends requests only to its own server", () => {
  const addresses = statusPage().match(/(?:https?:)?\/\/[a-z0-9.]+/g) ?? [];
  assert.deepEqual(
    addresses.filter((address) => address !== "http://www.w3.org"),
    [],
  );
  assert.doesNotMatch(statusPage(), /<(?:link|script|img)[^>]+(?:src|href)="(?!data:)/);
});
