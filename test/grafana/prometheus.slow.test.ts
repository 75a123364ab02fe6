import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { Counter, Gauge, type Registry } from "prom-client";
import { selectAll } from "../../grafana/queries.ts";
import { ROWS } from "../../grafana/rows.ts";
import { SummedHistogram } from "../../src/telemetry/summedSeries.ts";
import { createTelemetry, type Telemetry } from "../../src/telemetry/telemetry.ts";
import { listen } from "../support/servers/ports.ts";
import { registeredSeries } from "./expressions.ts";
import { type PrometheusServer, startPrometheus } from "./prometheusServer.ts";

const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0;
const LABELS_OF_PROMETHEUS = new Set(["namespace", "instance", "job", "le"]);
/** A rate needs two scrapes; the next one begins after they are stored. */
const SCRAPES = 4;
const CHAINS = ["a", "b"];
/** The default names of nodes: both chains have the same. */
const NODES = ["node1", "node2"];

/** Begins the series of two chains, and sets the gauges that have none. */
const beginSeries = ({ registry, series, metrics }: Telemetry): void => {
  const labelsOf = registeredSeries(registry);
  series.beginProcess(new Set(["redis", "disk"]));
  for (const chain of CHAINS) {
    series.beginChain({ chain, nodes: NODES, parts: new Set(["feed"]) });
    for (const { name } of registry.getMetricsAsArray()) {
      const metric = registry.getSingleMetric(name);
      if (!(metric instanceof Gauge)) {
        continue;
      }
      const open = [...(labelsOf.get(name) ?? [])].filter((label) => !LABELS_OF_PROMETHEUS.has(label));
      const first = Object.fromEntries(open.map((label) => [label, "x"]));
      for (const node of NODES) {
        metric.set({ ...first, ...(open.includes("chain") && { chain }), ...(open.includes("node") && { node }) }, 1);
      }
    }
    for (const node of NODES) {
      metrics.upstreamBreaker.set({ chain, node }, chain === "b" && node === "node2" ? 1 : 0);
      const unused = [metrics.upstreamRejecting, metrics.upstreamCordoned, metrics.upstreamHung];
      for (const gauge of [...unused, metrics.upstreamSuspended, metrics.upstreamWrongChain]) {
        gauge.set({ chain, node }, 0);
      }
    }
  }
};

/** Changes every series of every counter and histogram by one event. */
const countEvents = async (registry: Registry): Promise<void> => {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric instanceof SummedHistogram) {
      const { values } = await metric.get();
      for (const { labels } of values.filter(({ metricName }) => metricName === `${name}_count`)) {
        metric.observe(labels, 1);
      }
    } else if (metric instanceof Counter) {
      const { values } = await metric.get();
      for (const { labels } of values) {
        metric.inc(labels);
      }
    }
  }
};

/** Starts a target whose metrics change with each scrape. Resolves when a Prometheus has scraped it often enough. */
const startScraped = async () => {
  const telemetry = createTelemetry({ level: "silent" });
  beginSeries(telemetry);
  let scrapes = 0;
  const scraped = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    await countEvents(telemetry.registry);
    response.end(await telemetry.registry.metrics());
    scrapes += 1;
    if (scrapes === SCRAPES) {
      scraped.resolve();
    }
  });
  const prometheus = await startPrometheus(`127.0.0.1:${await listen(server)}`);
  await scraped.promise;
  return {
    prometheus,
    close: async () => {
      await prometheus.close();
      server.close();
      server.closeAllConnections();
    },
  };
};

describe("a real Prometheus", { skip: !hasPrometheus && "no prometheus" }, () => {
  let started: Awaited<ReturnType<typeof startScraped>>;
  let prometheus: PrometheusServer;
  before(async () => {
    started = await startScraped();
    prometheus = started.prometheus;
  });
  after(() => started.close());

  /** Returns the values of a panel's query by its legend. */
  const read = async (title: string, index = 0): Promise<Readonly<Record<string, number>>> => {
    const query = ROWS.flatMap(({ panels }) => panels).find((panel) => panel.title === title)?.queries[index];
    assert.ok(query !== undefined);
    const samples = await prometheus.query(selectAll(query.expr, "10s", "1m"));
    return Object.fromEntries(
      samples.map(({ labels, value }) => [
        query.legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? ""),
        Number(value.toFixed(3)),
      ]),
    );
  };

  test("gives data for every panel's expression", async () => {
    for (const { panels } of ROWS) {
      for (const { title, queries } of panels) {
        for (const { expr } of queries) {
          assert.ok((await prometheus.query(selectAll(expr, "10s", "1m"))).length > 0, `${title}: ${expr}`);
        }
      }
    }
  });

  test("calculates the overview", async () => {
    // Three of ten outcomes are faults; one of five look-ups that do not bypass the cache is a miss.
    assert.deepEqual(await read("Availability"), { a: 0.7, b: 0.7 });
    assert.deepEqual(await read("Hit ratio"), { a: 0.8, b: 0.8 });
    assert.deepEqual(await read("Nodes up"), { "a up": 2, "b up": 1 });
    assert.deepEqual(await read("Nodes up", 1), { "a of": 2, "b of": 2 });
  });

  test("gives each node its own line, although nodes of two chains have one name", async () => {
    assert.deepEqual(await read("Share of each node"), {
      "a node1": 0.5,
      "a node2": 0.5,
      "b node1": 0.5,
      "b node2": 0.5,
    });
    assert.equal(Object.keys(await read("Latency by node, 95th percentile")).length, 4);
  });
});
