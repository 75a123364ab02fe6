import assert from "node:assert/strict";
import { test } from "node:test";
import { ChainTelemetry } from "../../src/telemetry/chainTelemetry.ts";
import { silent } from "../support/builders/silent.ts";

test("only the chain that is shown has gauges, whatever the other one sets before and after", async () => {
  const telemetry = silent();
  const measured = { chain: "main", nodes: ["a"], parts: new Set<never>() };
  const [before, after] = [new ChainTelemetry(telemetry, measured), new ChainTelemetry(telemetry, measured)];
  const labels = { chain: "main", node: "a" };
  const read = async () => {
    const { upstreamHung, workersBusy, upstreamRetries } = telemetry.metrics;
    const all = await Promise.all([upstreamHung, workersBusy, upstreamRetries].map((metric) => metric.get()));
    return all.map(({ values }) => values.reduce((sum, { value }) => sum + value, 0));
  };
  const [old, next] = [before.telemetry.metrics, after.telemetry.metrics];
  before.show();
  old.upstreamHung.set(labels, 1);
  old.workersBusy.inc({ chain: "main" });
  next.workersBusy.inc({ chain: "main" }, 5);
  next.workersBusy.dec({ chain: "main" }, 2);
  next.upstreamRetries.inc({ chain: "main", reason: "timeout" });
  assert.deepEqual(await read(), [1, 1, 1]);
  before.hide();
  after.show();
  old.upstreamHung.set(labels, 1);
  old.workersBusy.dec({ chain: "main" });
  assert.deepEqual(await read(), [0, 3, 1]);
  assert.match(await telemetry.registry.metrics(), /forebay_upstream_hung\{chain="main",node="a"\} 0/);
  next.workersBusy.remove({ chain: "main" });
  after.hide();
  assert.doesNotMatch(await telemetry.registry.metrics(), /forebay_workers_busy\{/);
});
