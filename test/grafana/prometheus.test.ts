import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { ROWS } from "../../grafana/rows.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { registeredSeries } from "./expressions.ts";
import { startPrometheus } from "./prometheusServer.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;
const LABELS_OF_PROMETHEUS = new Set(["namespace", "instance", "job", "le"]);

/** Changes every metric once a scrape. */
const markActive = (registry: Registry, labelsOf: ReadonlyMap<string, ReadonlySet<string>>): void => {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    const names = labelsOf.get(name) ?? labelsOf.get(`${name}_count`) ?? new Set<string>();
    const labels = Object.fromEntries(
      [...names].filter((label) => !LABELS_OF_PROMETHEUS.has(label)).map((l) => [l, "x"]),
    );
    if (metric instanceof Counter) {
      metric.inc(labels);
    }
    if (metric instanceof Gauge) {
      metric.set(labels, 1);
    }
    if (metric instanceof Histogram) {
      metric.observe(labels, 1);
    }
    if (name === "forebay_cache_lookups_total" && metric instanceof Counter) {
      metric.inc({ ...labels, outcome: "miss" });
    }
  }
};

/** The values of Grafana if everything is selected. */
const filledIn = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "10s").replaceAll(/\$(chain|instance|node)\b/g, ".*");

test("a real Prometheus gives data for every panel's expression", {
  skip: !hasPrometheus && "no prometheus",
}, async () => {
  const { registry } = createTelemetry({ level: "silent" });
  const labelsOf = registeredSeries(registry);
  let scrapes = 0;
  const scraped = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    markActive(registry, labelsOf);
    response.end(await registry.metrics());
    scrapes += 1;
    // A rate needs two scrapes; the third one begins after the second is stored.
    if (scrapes === 4) {
      scraped.resolve();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const prometheus = await startPrometheus(`127.0.0.1:${address.port}`);
  after(async () => {
    await prometheus.close();
    server.close();
    server.closeAllConnections();
  });
  await scraped.promise;
  for (const { panels } of ROWS) {
    for (const { title, queries } of panels) {
      for (const { expr } of queries) {
        assert.ok((await prometheus.count(filledIn(expr))) > 0, `${title}: ${expr}`);
      }
    }
  }
});
