import { Gauge, type Registry } from "prom-client";

/** Removes the gauges' series of what is served no more: their last value would be shown, and alerted on, for ever. */
export const removeMetricSeries = async (registry: Registry, chain: string, node?: string): Promise<void> => {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (!(metric instanceof Gauge)) continue;
    const { values } = await metric.get();
    for (const { labels } of values) {
      if (labels.chain === chain && (node === undefined || labels.node === node)) metric.remove(labels);
    }
  }
};
