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

/** Replaces the generated part of a page. The text around it is unchanged. Throws if the page has no marks. */
export const withTable = (page: string, table: string): string => {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) {
    throw new Error(`the page has no ${BEGIN} ... ${END}`);
  }
  return `${page.slice(0, begin + BEGIN.length)}\n${table}\n${page.slice(end)}`;
};

const table = (path: string, format: () => string) => ({
  file: new URL(path, import.meta.url),
  update: (page: string): string => withTable(page, format()),
});

/** The pages with a generated part, each with what writes it anew. */
export const TABLES = [
  table("configuration.md", formatConfigurationTable),
  table("metrics.md", formatMetricsTable),
  table("providers.md", formatProvidersTable),
  table("retries.md", formatRetriesTable),
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
