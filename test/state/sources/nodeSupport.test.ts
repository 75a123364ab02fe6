import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeSupport } from "../../../src/state/sources/sourceNodes.ts";

test("what a node does not support is forgotten after ten minutes", () => {
  let nowMs = 1_000;
  const support = new NodeSupport<"unsupported">(() => nowMs);
  support.learn("one", "unsupported");
  nowMs += 600_000;
  assert.equal(support.of("one"), "unsupported");
  assert.equal(support.of("two"), undefined);
  nowMs += 1;
  assert.equal(support.of("one"), undefined);
});
