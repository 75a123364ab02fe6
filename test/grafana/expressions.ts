import type { Registry } from "prom-client";
import { SummedHistogram } from "../../src/telemetry/summedSeries.ts";

/** Labels that Prometheus itself or the histogram adds. */
const ADDED_LABELS = ["namespace", "instance", "job", "le"];

/** Every series name that a registry exposes, with its labels; a histogram has three. */
export const registeredSeries = (registry: Registry): ReadonlyMap<string, ReadonlySet<string>> => {
  const series = new Map<string, ReadonlySet<string>>();
  for (const { name } of registry.getMetricsAsArray()) {
    const metric = registry.getSingleMetric(name);
    if (metric === undefined) {
      continue;
    }
    const labels = new Set([...labelNamesOf(metric), ...ADDED_LABELS]);
    const suffixes = metric instanceof SummedHistogram ? ["_bucket", "_sum", "_count"] : [""];
    for (const suffix of suffixes) {
      series.set(name + suffix, labels);
    }
  }
  return series;
};

const labelNamesOf = (metric: object): readonly string[] =>
  "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames.map(String) : [];

const SELECTOR = /\b(forebay_[a-z0-9_]+)(?:\{([^}]*)\})?/g;
const MATCHER = /([a-zA-Z_]+)\s*(?:=~|!~|!=|=)/g;
const GROUPING = /\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g;

/** Lists unknown names in one PromQL expression. promtool checks the syntax. */
export const faultsOf = (expr: string, series: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] => {
  const faults: string[] = [];
  const selectors = [...expr.matchAll(SELECTOR)];
  if (selectors.length === 0) {
    faults.push("names no metric of forebay");
  }
  const shared: ReadonlySet<string>[] = [];
  for (const [, name = "", matchers = ""] of selectors) {
    const labels = series.get(name);
    if (labels === undefined) {
      faults.push(`unknown metric ${name}`);
      continue;
    }
    shared.push(labels);
    for (const [, label = ""] of matchers.matchAll(MATCHER)) {
      if (!labels.has(label)) {
        faults.push(`${name} has no label ${label}`);
      }
    }
  }
  for (const [, list = ""] of expr.matchAll(GROUPING)) {
    for (const label of list.split(",").map((part) => part.trim())) {
      if (!shared.every((labels) => labels.has(label))) {
        faults.push(`not every metric has the label ${label}`);
      }
    }
  }
  return faults;
};
