import { Gauge, type Registry } from "./promClient.ts";

/**
 * Removes the gauge series of a chain or node that is no longer served.
 * Otherwise its last value stays in dashboards and alerts.
 */
export const removeMetricSeries = async (registry: Registry, chain: string, node?: string): Promise<void> => {
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (!(metric instanceof Gauge)) {
      continue;
    }
    const { values } = await metric.get();
    for (const { labels } of values) {
      if (labels.chain === chain && (node === undefined || labels.node === node)) {
        metric.remove(labels);
      }
    }
  }
};
