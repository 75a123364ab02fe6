import { readFileSync, writeFileSync } from "node:fs";
import { formatValuesTable } from "../helm/valuesTable.ts";
import { withAlerts } from "./alertsTable.ts";
import { formatConfigurationTable } from "./configurationTable.ts";
import { formatMethodsTable } from "./methodsTable.ts";
import { formatMetricsTable } from "./metricsTable.ts";
import { formatProvidersTable } from "./providersTable.ts";
import { formatRefusedMethods } from "./refusedMethodsList.ts";
import { formatRetriesTable } from "./retriesTable.ts";
import { formatTruthReports, formatTruthSums } from "./truthTable.ts";

const BEGIN = "<!-- generated: npm run generate -->";
const END = "<!-- /generated -->";

/** Replaces the generated parts of a page, in their order. The text around them is unchanged. Throws if their number differs. */
export const withTables = (page: string, tables: readonly string[]): string => {
  const [start = "", ...parts] = page.split(BEGIN);
  if (parts.length !== tables.length || parts.some((part) => !part.includes(END))) {
    throw new Error(`the page has not ${tables.length} times ${BEGIN} ... ${END}`);
  }
  return [start, ...parts.map((part, at) => `\n${tables[at]}\n${part.slice(part.indexOf(END))}`)].join(BEGIN);
};

const table = (path: string, ...formats: readonly (() => string)[]) => ({
  file: new URL(path, import.meta.url),
  update: (page: string): string =>
    withTables(
      page,
      formats.map((format) => format()),
    ),
});

/** The pages with a generated part, each with what writes it anew. */
export const TABLES = [
  table("configuration.md", formatConfigurationTable),
  table("metrics.md", formatMetricsTable),
  table("nodes.md", formatProvidersTable, formatRetriesTable),
  table("truth.md", formatTruthReports),
  table("../README.md", formatTruthSums),
  table("limits.md", formatRefusedMethods),
  table("methods.md", formatMethodsTable),
  table("../helm/README.md", formatValuesTable),
  { file: new URL("runbook.md", import.meta.url), update: withAlerts },
];

if (import.meta.main) {
  for (const { file, update } of TABLES) {
    writeFileSync(file, update(readFileSync(file, "utf8")));
  }
}
