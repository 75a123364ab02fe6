import type { Query } from "./row.ts";

/** The variables of the dashboard, from the widest to the narrowest. */
export const VARIABLES = ["namespace", "job", "chain", "instance", "node"] as const;

/** Replaces the variables as Grafana does if everything is selected. `range` is the time that a panel shows. */
export const selectAll = (expr: string, window: string, range: string): string =>
  VARIABLES.reduce((text, name) => text.replaceAll(`"$${name}"`, '".*"'), expr)
    .replaceAll("$__rate_interval", window)
    .replaceAll("$__range", range);

export const INSTANCE = 'namespace=~"$namespace",job=~"$job",instance=~"$instance"';
export const CHAIN = `chain=~"$chain",${INSTANCE}`;
export const NODE = `node=~"$node",${CHAIN}`;
export const WINDOW = "[$__rate_interval]";

export const rate = (metric: string, labels: string): string => `rate(forebay_${metric}{${labels}}${WINDOW})`;

/** Events a second, one line for each value of `by`. */
export const rates = (metric: string, labels: string, ...by: string[]): Query => ({
  expr: by.length === 0 ? `sum(${rate(metric, labels)})` : `sum by (${by.join(", ")}) (${rate(metric, labels)})`,
  legend: by.length === 0 ? metric.replace(/_total$/, "") : by.map((label) => `{{${label}}}`).join(" "),
});

/** The share of each value of a label in the events of a chain. */
export const shares = (metric: string, label: string): Query => ({
  expr: `sum by (chain, ${label}) (${rate(metric, CHAIN)}) / on (chain) group_left sum by (chain) (${rate(metric, CHAIN)})`,
  legend: `{{chain}} {{${label}}}`,
});

/** Events in the time that a panel shows, one line for each chain. */
export const totals = (metric: string): Query => ({
  expr: `sum by (chain) (increase(forebay_${metric}{${CHAIN}}[$__range]))`,
  legend: "{{chain}}",
});

export const quantile = (share: number, metric: string, labels: string, ...by: string[]): Query => ({
  expr: `histogram_quantile(${share}, sum by (${["le", ...by].join(", ")}) (${rate(`${metric}_bucket`, labels)}))`,
  legend: [...by.map((label) => `{{${label}}}`), `p${share * 100}`].join(" "),
});

export const value = (aggregate: "sum" | "max" | "min", metric: string, labels: string, ...by: string[]): Query => ({
  expr: `${aggregate} by (${by.join(", ")}) (forebay_${metric}{${labels}})`,
  legend: by.map((label) => `{{${label}}}`).join(" "),
});

export const named = (legend: string, query: Query): Query => ({ ...query, legend });
