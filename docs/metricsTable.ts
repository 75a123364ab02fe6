import { Counter } from "prom-client";
import { SummedHistogram } from "../src/telemetry/summedSeries.ts";
import { createTelemetry } from "../src/telemetry/telemetry.ts";

export interface MetricRow {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

const textOf = (metric: object, key: "help"): string => {
  const value: unknown = Reflect.get(metric, key);
  return typeof value === "string" ? value : "";
};

const labelsOf = (metric: object): readonly string[] => {
  const value: unknown = Reflect.get(metric, "labelNames");
  return Array.isArray(value) ? value.map(String) : [];
};

/** Lists every metric that a process registers, in order of registration. */
export const readMetrics = (): readonly MetricRow[] => {
  const { registry } = createTelemetry({ level: "silent" });
  return registry.getMetricsAsArray().flatMap(({ name }) => {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) {
      return [];
    }
    const kind = metric instanceof SummedHistogram ? "histogram" : metric instanceof Counter ? "counter" : "gauge";
    return [{ name, kind, labels: labelsOf(metric), help: textOf(metric, "help") }];
  });
};

export const formatMetricsTable = (): string =>
  [
    "| Metric | Kind | Labels | Meaning |",
    "|---|---|---|---|",
    ...readMetrics().map(
      ({ name, kind, labels, help }) =>
        `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
    ),
  ].join("\n");
