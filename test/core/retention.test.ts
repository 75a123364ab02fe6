import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { RETENTION, type RetentionClass } from "../../src/core/retention.ts";
import { createHeads } from "../support/builders/heads.ts";

const src = new URL("../../src/", import.meta.url);
const classes = Object.keys(RETENTION) as RetentionClass[];

test("no code outside RETENTION distinguishes retention classes", () => {
  const comparison = /retention\s*[!=]==|===?\s*[\w.]*retention\b|switch \([\w.]*retention\)|Set<RetentionClass>/;
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  assert.ok(files.length > 200);
  const found = files.filter((path) => comparison.test(readFileSync(new URL(path, src), "utf8")));
  assert.deepEqual(found, []);
});

test("replicas share only responses whose key or entry names the block", () => {
  for (const name of classes) {
    const { storedSeconds, boundTo, blockFrom, finality } = RETENTION[name];
    if (storedSeconds === undefined) {
      continue;
    }
    assert.ok(boundTo !== "view" || blockFrom === "response", name);
    assert.ok(storedSeconds.recent < storedSeconds.final, name);
    if (blockFrom === "response") {
      assert.equal(finality, "ofBlock", name);
    }
  }
});

test("a response that is never cached has no key, and is not coalesced", () => {
  const heads = createHeads({ latest: 5, finalized: 5 });
  for (const name of classes) {
    const { isCached, isCoalesced, keyAnchor } = RETENTION[name];
    assert.equal(keyAnchor(heads.latest, heads) !== undefined, isCached, name);
    assert.equal(isCoalesced, isCached, name);
  }
});
