import { readFileSync, writeFileSync } from "node:fs";
import { formatValuesTable } from "../helm/valuesTable.ts";
import { formatAlertsTable } from "./alertsTable.ts";
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

export const TABLES = [
  { file: new URL("configuration.md", import.meta.url), format: formatConfigurationTable },
  { file: new URL("metrics.md", import.meta.url), format: formatMetricsTable },
  { file: new URL("alerts.md", import.meta.url), format: formatAlertsTable },
  { file: new URL("providers.md", import.meta.url), format: formatProvidersTable },
  { file: new URL("retries.md", import.meta.url), format: formatRetriesTable },
  { file: new URL("truth.md", import.meta.url), format: formatTruthReports },
  { file: new URL("../README.md", import.meta.url), format: formatTruthSums },
  { file: new URL("limits.md", import.meta.url), format: formatRefusedMethods },
  { file: new URL("methods.md", import.meta.url), format: () => formatMethodsTable() },
  { file: new URL("../helm/README.md", import.meta.url), format: formatValuesTable },
];

if (import.meta.main) {
  for (const { file, format } of TABLES) {
    writeFileSync(file, withTable(readFileSync(file, "utf8"), format()));
  }
}
