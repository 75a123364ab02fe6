import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheStatus } from "../../src/core/rpcSource.ts";
import { formatCacheStatus } from "../../src/http/cacheStatus.ts";

const format = (...statuses: CacheStatus[]): string => formatCacheStatus(statuses.map((status) => ({ status })));

test("the header of one response", () => {
  assert.equal(format({ hit: "memory" }), "forebay; hit; detail=memory");
  assert.equal(format({ fwd: "miss", stored: true }), "forebay; fwd=miss; stored");
  assert.equal(format({ fwd: "miss", collapsed: true }), "forebay; fwd=miss; collapsed");
  assert.equal(format({ fwd: "partial", detail: 'a "b"\n' }), 'forebay; fwd=partial; detail="a \\"b\\"?"');
  assert.equal(formatCacheStatus([], 1), "forebay; detail=error");
  assert.equal(format(), "forebay", "a notification has no answer");
});

test("a batch has one combined header", () => {
  assert.equal(format({ hit: "memory" }, { hit: "redis" }), 'forebay; hit; detail="2 of 2 hits"');
  assert.equal(format({ hit: "memory" }, { fwd: "miss" }), 'forebay; fwd=partial; detail="1 of 2 hits"');
  assert.equal(format({ fwd: "method" }, { fwd: "method" }), 'forebay; fwd=method; detail="0 of 2 hits"');
  assert.equal(format({ fwd: "method" }, { fwd: "bypass" }), 'forebay; fwd=miss; detail="0 of 2 hits"');
});

test("a rejected call of a batch is no hit", () => {
  const hit = { status: { hit: "memory" } } as const;
  assert.equal(formatCacheStatus([hit], 1), 'forebay; fwd=partial; detail="1 of 2 hits"');
  assert.equal(formatCacheStatus([{ status: { fwd: "miss" } }], 1), 'forebay; fwd=miss; detail="0 of 2 hits"');
  assert.equal(formatCacheStatus([], 2), "forebay; detail=error");
});
