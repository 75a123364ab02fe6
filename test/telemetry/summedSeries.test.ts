import assert from "node:assert/strict";
import { test } from "node:test";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const LABELS = { chain: "op", method: "eth_call" };

const linesOf = (text: string, name: string): readonly string[] =>
  text.split("\n").filter((line) => line.startsWith(name) && line.includes('method="eth_call"'));

test("observations of a series are in the scrape, each once, beside those of the histogram itself", async () => {
  const { metrics, registry } = createTelemetry({ level: "silent" });
  const series = metrics.requestSeconds.series(LABELS);
  const values = [0.0001, 0.001, 0.25, 1_000];
  for (const value of values) {
    series.observe(value);
  }
  await registry.metrics();
  const summed = linesOf(await registry.metrics(), "forebay_request_seconds");

  const other = createTelemetry({ level: "silent" });
  for (const value of values) {
    other.metrics.requestSeconds.observe(LABELS, value);
  }
  assert.deepEqual(summed, linesOf(await other.registry.metrics(), "forebay_request_seconds"));
  assert.ok(summed.length > 3);

  metrics.requestSeconds.observe(LABELS, 2);
  series.observe(2);
  const count = linesOf(await registry.metrics(), "forebay_request_seconds_count");
  assert.match(count.join(), / 6$/);
});

test("increments of a series are in the scrape, and two callers share one series", async () => {
  const { metrics, registry } = createTelemetry({ level: "silent" });
  const labels = { ...LABELS, outcome: "ok" } as const;
  metrics.requests.series(labels).inc();
  metrics.requests.series(labels).inc(2);
  metrics.requests.inc(labels);
  await registry.metrics();
  assert.match(linesOf(await registry.metrics(), "forebay_requests_total").join(), / 4$/);
});
