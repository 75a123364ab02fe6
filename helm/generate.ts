import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { formatDashboard } from "../grafana/dashboard.ts";
import { valuesSchema } from "./values.ts";

/** A text of the configuration with a variable (`VARIABLE` of src/config/readConfig.ts), which forebay replaces and then checks. */
const WITH_VARIABLE = { type: "string", pattern: String.raw`\$\{(?:file:[^}]+|[A-Za-z_]\w*(?::-[^}]*)?)\}` };
/** The chart needs these numbers itself: for ports, probes, the grace period and the size of the data folder. */
const CHART_NUMBERS: ReadonlySet<string> = new Set(["port", "opsPort", "drainDelayMs", "drainTimeoutMs", "diskBytes"]);
const CHECKS = ["pattern", "minLength", "enum", "const", "format"];

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether the schema refuses some text: it is of another type, or is checked. */
const refusesText = ({ type, ...rest }: Record<string, unknown>): boolean =>
  type === "string" ? CHECKS.some((check) => check in rest) : ["number", "integer", "boolean"].includes(String(type));

/** Returns the schema of the configuration in which each value may be a text with a variable. */
const admitVariables = (schema: unknown): unknown => {
  if (Array.isArray(schema)) {
    return schema.map(admitVariables);
  }
  if (!isMapping(schema)) {
    return schema;
  }
  if (refusesText(schema)) {
    const { description, default: value, ...checked } = schema;
    return {
      ...(description !== undefined && { description }),
      ...(value !== undefined && { default: value }),
      anyOf: [checked, WITH_VARIABLE],
    };
  }
  const { properties } = schema;
  return {
    ...schema,
    ...(isMapping(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, item]) => [name, CHART_NUMBERS.has(name) ? item : admitVariables(item)]),
      ),
    }),
    ...("items" in schema && { items: admitVariables(schema.items) }),
    ...("anyOf" in schema && { anyOf: admitVariables(schema.anyOf) }),
    ...("additionalProperties" in schema && { additionalProperties: admitVariables(schema.additionalProperties) }),
  };
};

/** Draft 7, which every Helm 3 reads. */
const formatValuesSchema = (): string => {
  const { properties, ...schema } = z.toJSONSchema(valuesSchema, { io: "input", target: "draft-7" });
  const values = { ...schema, properties: { ...properties, config: admitVariables(properties?.config) } };
  return `${JSON.stringify(values, null, 2)}\n`;
};

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
