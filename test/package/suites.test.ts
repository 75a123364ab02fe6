import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { listSuite } from "../suites.ts";

const TEST_FOLDER = join(import.meta.dirname, "..");

test("a test file is in the fast suite or in the slow one", () => {
  const [all, fast, slow] = ["all", "fast", "slow"].map(listSuite);
  assert.deepEqual([...(fast ?? []), ...(slow ?? [])].toSorted(), all);
  assert.ok((slow ?? []).every((path) => path.endsWith(".slow.test.ts")));
  assert.throws(() => listSuite("quick"), /no suite "quick": all, slow, fast, unit/);
});

test("unit tests are the test files that neither start anvil, Redis nor any other program", () => {
  const unit = new Set(listSuite("unit").map((path) => relative(TEST_FOLDER, path)));
  const all = readdirSync(TEST_FOLDER, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".test.ts"),
  );
  assert.ok(unit.size > all.length / 2, `${unit.size} of ${all.length}`);
  for (const path of ["jsonrpc/dispatch.test.ts", "pending/pending.test.ts"]) {
    assert.ok(unit.has(path), path);
  }
  // The last one starts anvil through an indirect import.
  for (const path of ["cache/redisStore.test.ts", "grafana/alerts.test.ts", "service/caching.test.ts"]) {
    assert.ok(!unit.has(path), path);
  }
  const starting = [...unit].filter((path) =>
    /\b(?:startRedis|startAnvil|createDevnet|startPrometheus)\(/.test(readFileSync(join(TEST_FOLDER, path), "utf8")),
  );
  assert.deepEqual(starting, []);
});
