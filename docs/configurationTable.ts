import { z } from "zod";
import { configSchema } from "../src/config/schema.ts";

type Schema = z.core.JSONSchema.JSONSchema;

export interface Option {
  readonly path: string;
  readonly type: string;
  readonly fallback: string;
  readonly meaning: string;
}

const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null;

const isObject = (schema: Schema): boolean => schema.type === "object" && schema.properties !== undefined;

const itemsOf = ({ items }: Schema): Schema | undefined =>
  isSchema(items) && !Array.isArray(items) ? items : undefined;

/** Formats the type of an option for a table. */
export const formatType = (schema: Schema): string => {
  if (schema.const !== undefined) {
    return `\`${String(schema.const)}\``;
  }
  if (schema.enum !== undefined) {
    return schema.enum
      .filter((value) => value !== "")
      .map((value) => `\`${String(value)}\``)
      .join(", ");
  }
  if (schema.anyOf !== undefined) {
    return schema.anyOf.filter(isSchema).map(formatType).join(" or ");
  }
  if (isObject(schema)) {
    return `{${Object.keys(schema.properties ?? {}).join(", ")}}`;
  }
  if (schema.type === "array") {
    return `list of ${formatType(itemsOf(schema) ?? {})}`;
  }
  if (schema.type === "object") {
    return "mapping";
  }
  return typeof schema.type === "string" ? schema.type : "any";
};

const formatFallback = (schema: Schema, required: boolean): string => {
  if (required) {
    return "required";
  }
  return schema.default === undefined ? "" : `\`${JSON.stringify(schema.default)}\``;
};

/** The options of the objects that a value may be instead of a word, if they have descriptions. */
const optionsOfUnion = ({ anyOf = [] }: Schema, prefix: string): Option[] =>
  anyOf
    .filter(isSchema)
    .flatMap((each) => optionsOf(each, prefix))
    .filter(({ meaning }) => meaning !== "");

const optionsOf = (schema: Schema, prefix: string): Option[] => {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    if (!isSchema(property)) {
      return [];
    }
    const path = `${prefix}${name}`;
    const items = itemsOf(property);
    if (isObject(property)) {
      return optionsOf(property, `${path}.`);
    }
    if (items !== undefined && isObject(items)) {
      return optionsOf(items, `${path}[].`);
    }
    return [
      {
        path,
        type: formatType(property),
        fallback: formatFallback(property, required.has(name)),
        meaning: property.description ?? "",
      },
      ...optionsOfUnion(property, `${path}.`),
    ];
  });
};

/** Lists every option of the configuration, in the order of the schema. */
export const readOptions = (): readonly Option[] => optionsOf(z.toJSONSchema(configSchema, { io: "input" }), "");

/** Numbers that say what forebay works with: they neither bound nor tune anything. */
const NUMBERS: ReadonlySet<string> = new Set([
  ...["chains[].chainId", "chains[].nodes[].priority"],
  ...["server.port", "server.opsPort", "access.keys[].confirmations", "access.payment.asset.decimals"],
]);

/** Whether an option is a number, a size or a time that bounds or tunes something. Most users need none of them. */
const isLimit = ({ path, type }: Option): boolean => /^(?:integer|number)/.test(type) && !NUMBERS.has(path);

/** Whether forebay decides by itself unless the option says otherwise. */
const isAutomatic = ({ fallback }: Option): boolean => fallback === '`"auto"`';

const formatOptions = (options: readonly Option[]): readonly string[] => [
  "| Option | Type | Default | Meaning |",
  "|---|---|---|---|",
  ...options.map(
    ({ path, type, fallback, meaning }) =>
      `| \`${path}\` | ${type} | ${fallback} | ${meaning.replaceAll("|", "\\|")} |`,
  ),
];

/** Formats two tables: what people set; and limits, with what forebay chooses by itself. */
export const formatConfigurationTable = (): string => {
  const isOfSecond = (option: Option) => isLimit(option) || isAutomatic(option);
  const options = readOptions();
  return [
    "## What people set",
    "",
    ...formatOptions(options.filter((option) => !isOfSecond(option))),
    "",
    "## Limits and fine tuning",
    "",
    "Numbers, sizes and times, and what forebay chooses by itself (`auto`). [Limits](limits.md) says what a client sees at each limit.",
    "",
    ...formatOptions(options.filter(isOfSecond)),
  ].join("\n");
};
