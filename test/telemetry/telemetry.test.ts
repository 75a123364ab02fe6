import assert from "node:assert/strict";
import { test } from "node:test";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const sampleOf = (text: string, name: string): number | undefined => {
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
};

test("memory and event loop delay are read when they are scraped", async () => {
  const { registry } = createTelemetry({ level: "silent" });
  const text = await registry.metrics();
  const megabyte = 1024 * 1024;
  assert.ok((sampleOf(text, "forebay_resident_memory_bytes") ?? 0) > 10 * megabyte);
  const delay = sampleOf(text, "forebay_event_loop_delay_seconds");
  assert.ok(delay !== undefined && delay >= 0 && delay < 60, String(delay));
});

test("redis_up has no value until there is a Redis", async () => {
  const { metrics, registry } = createTelemetry({ level: "silent" });
  assert.equal(sampleOf(await registry.metrics(), "forebay_redis_up"), undefined);
  metrics.redisUp.set(0);
  assert.equal(sampleOf(await registry.metrics(), "forebay_redis_up"), 0);
});
