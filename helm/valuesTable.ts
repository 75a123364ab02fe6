import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { formatType } from "../docs/configurationTable.ts";
import { valuesSchema } from "./values.ts";

type Schema = z.core.JSONSchema.JSONSchema;

interface Value {
  readonly path: string;
  readonly type: string;
  readonly meaning: string;
}

/** A value with a description is one row, also if it has members. */
const valuesOf = ({ properties = {} }: Schema, prefix: string): readonly Value[] =>
  Object.entries(properties).flatMap(([name, property]) => {
    if (typeof property === "boolean") {
      return [];
    }
    const path = `${prefix}${name}`;
    const { description: meaning, type } = property;
    if (meaning === undefined && type === "object") {
      return valuesOf(property, `${path}.`);
    }
    return [{ path, type: type === "object" ? "mapping" : formatType(property), meaning: meaning ?? "" }];
  });

/** Lists every value of the chart, in the order of the schema. */
export const readValues = (): readonly Value[] => valuesOf(z.toJSONSchema(valuesSchema, { io: "input" }), "");

const readDefaults = (): unknown => parse(readFileSync(new URL("values.yaml", import.meta.url), "utf8"));

/** The value at a path in `values.yaml`. Undefined if there is none. */
const defaultAt = (defaults: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (value, name) => (typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined),
      defaults,
    );

const formatDefault = (value: unknown): string =>
  value === undefined || value === "" ? "" : `\`${JSON.stringify(value)}\``;

/** Formats the values of the chart as a table, with the defaults of `values.yaml`. */
export const formatValuesTable = (): string => {
  const defaults = readDefaults();
  return [
    "| Value | Type | Default | Meaning |",
    "|---|---|---|---|",
    ...readValues().map(
      ({ path, type, meaning }) =>
        `| \`${path}\` | ${type} | ${formatDefault(defaultAt(defaults, path))} | ${meaning} |`,
    ),
  ].join("\n");
};
