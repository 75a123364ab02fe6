import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { formatDashboard } from "../grafana/dashboard.ts";
import { valuesSchema } from "./values.ts";

/** Draft 7, which every Helm 3 reads. */
const formatValuesSchema = (): string =>
  `${JSON.stringify(z.toJSONSchema(valuesSchema, { io: "input", target: "draft-7" }), null, 2)}\n`;

const formatAlerts = (): string => readFileSync(new URL("../grafana/alerts.yaml", import.meta.url), "utf8");

/** A chart may only read files inside its own folder: the dashboard and the rules are copied there. */
export const FILES = [
  { file: new URL("values.schema.json", import.meta.url), format: formatValuesSchema },
  { file: new URL("files/dashboard.json", import.meta.url), format: formatDashboard },
  { file: new URL("files/alerts.yaml", import.meta.url), format: formatAlerts },
];

if (import.meta.main) {
  for (const { file, format } of FILES) {
    writeFileSync(file, format());
  }
}
