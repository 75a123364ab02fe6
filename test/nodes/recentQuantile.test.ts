import assert from "node:assert/strict";
import { test } from "node:test";
import { RecentQuantile } from "../../src/nodes/hedge.ts";

const record = (quantile: RecentQuantile, durations: readonly number[]): void => {
  for (const durationMs of durations) {
    quantile.record(durationMs);
  }
};

test("the quantile is undefined before there are enough values", () => {
  const quantile = new RecentQuantile(0.95);
  record(quantile, Array(19).fill(10));
  assert.equal(quantile.valueMs, undefined);
  quantile.record(10);
  assert.ok((quantile.valueMs ?? 0) >= 10);
});

test("the quantile is at most a fifth too high", () => {
  for (const scale of [1, 10, 300]) {
    const quantile = new RecentQuantile(0.95);
    record(
      quantile,
      Array.from({ length: 800 }, (_, at) => ((at % 100) + 1) * scale),
    );
    const value = quantile.valueMs ?? 0;
    assert.ok(value >= 95 * scale && value <= 96 * scale * 1.2 + 1, `${value} for ${95 * scale}`);
  }
});

test("a node that has become slow gets a longer quantile", () => {
  const quantile = new RecentQuantile(0.95);
  record(quantile, Array(5_000).fill(10));
  record(quantile, Array(200).fill(1_000));
  assert.ok((quantile.valueMs ?? 0) >= 1_000);
  record(quantile, Array(5_000).fill(10));
  assert.ok((quantile.valueMs ?? 0) <= 12);
});

test("values beyond the last bucket count in it", () => {
  const quantile = new RecentQuantile(0.95);
  record(quantile, Array(20).fill(1e9));
  assert.ok(Number.isFinite(quantile.valueMs));
});
