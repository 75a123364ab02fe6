import { createRequire } from "node:module";
import type * as PromClient from "prom-client";

const require = createRequire(import.meta.url);

/** The index of prom-client also loads node:cluster, node:child_process and a push client: 10 MB and 30 ms of each start. */
export const Registry: typeof PromClient.Registry = require("prom-client/lib/registry.js");
export const Counter: typeof PromClient.Counter = require("prom-client/lib/counter.js");
export const Gauge: typeof PromClient.Gauge = require("prom-client/lib/gauge.js");
export const Histogram: typeof PromClient.Histogram = require("prom-client/lib/histogram.js");

export type Registry = PromClient.Registry;
export type Counter = PromClient.Counter;
export type Gauge = PromClient.Gauge;
export type Histogram = PromClient.Histogram;
export type MetricType = PromClient.MetricType;

/** A gauge with a series for each chain. */
export class ChainGauge extends Gauge {}

/** Removes the series of a chain or node that is no longer served. Otherwise they stay in dashboards and alerts. */
export const removeMetricSeries = async (registry: Registry, chain: string, node?: string): Promise<void> => {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    const values = (await metric?.get())?.values ?? [];
    for (const { labels } of values) {
      // The buckets of a histogram have one more label than its series.
      if (labels.chain === chain && (node === undefined || labels.node === node) && !("le" in labels)) {
        metric?.remove(labels);
      }
    }
  }
};
