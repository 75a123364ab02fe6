import assert from "node:assert/strict";
import { test } from "node:test";
import { readStatusValues, sumOfValues } from "../../src/admin/statusValues.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

test("values that were read stay", async () => {
  const { metrics } = createTelemetry({ level: "silent" });
  const saved = metrics.savedCalls.series({ chain: "main" });
  saved.inc(2);
  const before = await readStatusValues(metrics);
  saved.inc(3);
  const after = await readStatusValues(metrics);
  assert.deepEqual(
    [before, after].map((values) => sumOfValues(values.of("savedCalls", "main"))),
    [2, 5],
  );
  assert.deepEqual(after.of("savedCalls", "other"), []);
});
