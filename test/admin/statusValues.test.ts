import assert from "node:assert/strict";
import { test } from "node:test";
import { readStatusValues, sumOfValues } from "../../src/admin/statusValues.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

test("values that were read stay, and those of other processes are added", async () => {
  const { metrics } = createTelemetry({ level: "silent" });
  const saved = metrics.savedCalls.series({ chain: "main" });
  const others = (name: string) =>
    name === "forebay_saved_calls_total" ? [{ labels: { chain: "main" }, value: 10 }] : [];
  saved.inc(2);
  const before = await readStatusValues(metrics, others);
  saved.inc(3);
  const after = await readStatusValues(metrics, others);
  assert.deepEqual(
    [before, after].map((values) => sumOfValues(values.of("savedCalls", "main"))),
    [12, 15],
  );
  assert.deepEqual(after.of("savedCalls", "other"), []);
});
