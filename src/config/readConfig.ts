import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { z } from "zod";
import { errorText } from "../core/errorText.ts";
import { createProviderChains } from "./providerChains.ts";
import { type Config, configSchema } from "./schema.ts";
import { firstWord, UnknownKeys } from "./unknownKey.ts";

const require = createRequire(import.meta.url);
/** Loaded if there is a file. */
const loadYaml = (): typeof import("yaml") => require("yaml");

/** Without it, a mapping in the place of a key would be part of an error message, with its secrets. */
const YAML_OPTIONS = { stringKeys: true } as const;

/** The error of an invalid configuration. It lists all faults, each with its path. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(
      `the configuration has ${faults.length === 1 ? "a fault" : `${faults.length} faults`}:\n  ${faults.join("\n  ")}`,
    );
    this.faults = faults;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const OPTIONS = {
  config: { type: "string", short: "c" },
  upstream: { type: "string", multiple: true },
  "upstream-ws": { type: "string", multiple: true },
  provider: { type: "string", multiple: true },
  chain: { type: "string", multiple: true },
  feed: { type: "string", multiple: true },
  redis: { type: "string" },
  "data-dir": { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  "ops-host": { type: "string" },
  "ops-port": { type: "string" },
  "log-level": { type: "string" },
  force: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
} as const;

const COMMANDS = ["serve", "check", "cordon", "uncordon", "health", "init", "schema"] as const;
/** The commands that are followed by the names of a chain and of a node. */
const NODE_COMMANDS: ReadonlySet<string> = new Set(["cordon", "uncordon"]);

export interface Arguments {
  readonly command: (typeof COMMANDS)[number] | "help" | "version";
  /** The names after the command. */
  readonly names?: readonly string[];
  /** Values of the flags. An environment variable replaces a missing flag. */
  readonly values: Readonly<Record<string, string | readonly string[] | boolean | undefined>>;
}

/**
 * Parses command, flags and environment variables. `FOREBAY_UPSTREAM_WS` is the variable of `--upstream-ws`.
 * Commas separate the items of a list. Throws ConfigError.
 */
export const readArguments = (argv: readonly string[], environment: Environment): Arguments => {
  let parsed: ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true; args: string[] }>>;
  try {
    parsed = parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new ConfigError([errorText(error)]);
  }
  const { values, positionals } = parsed;
  if (values.help === true) {
    return { command: "help", values };
  }
  if (values.version === true) {
    return { command: "version", values };
  }
  const [name = "serve", ...rest] = positionals;
  const command = COMMANDS.find((known) => known === name);
  if (command === undefined || (rest.length > 0 && !NODE_COMMANDS.has(command))) {
    throw new ConfigError([`unknown command ${positionals.join(" ")}: expected ${COMMANDS.join(", ")}`]);
  }
  const fromEnvironment = Object.entries(OPTIONS).flatMap(([name, option]) => {
    const text = environment[`FOREBAY_${name.replaceAll("-", "_").toUpperCase()}`];
    if (text === undefined || text === "" || option.type === "boolean") {
      return [];
    }
    return [[name, "multiple" in option ? text.split(",") : text]];
  });
  return { command, names: rest, values: { ...Object.fromEntries(fromEnvironment), ...values } };
};

const VARIABLE = /\$\{(?:file:([^}]+)|([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}/g;

/** Lists the files that the text of a configuration names as `${file:/path}`. */
export const filesNamedIn = (text: string): readonly string[] =>
  [...text.matchAll(VARIABLE)].flatMap(([, file]) => (file === undefined ? [] : [file]));

/** Reads a file that an option names. Editors and `echo` end it with a newline, which is not part of the value. */
const readValue = (file: string, path: string, faults: string[]): string => {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
    faults.push(`${path}: cannot read the file ${file}${code}`);
    return "";
  }
};

const formatMember = (path: string, key: string): string =>
  path === "" ? firstWord(key) : `${path}.${firstWord(key)}`;

/** Replaces `${NAME}`, `${NAME:-default}` and `${file:/path}` in every string of a parsed file. */
const substitute = (value: unknown, environment: Environment, path: string, faults: string[]): unknown => {
  if (typeof value === "string") {
    return value.replace(VARIABLE, (_, file: string | undefined, name: string, fallback: string | undefined) => {
      if (file !== undefined) {
        return readValue(file, path, faults);
      }
      const text = environment[name] ?? fallback;
      if (text === undefined) {
        faults.push(`${path}: the environment has no ${name}`);
      }
      return text ?? "";
    });
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => substitute(item, environment, `${path}[${index}]`, faults));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, substitute(item, environment, formatMember(path, key), faults)]),
  );
};

/** Replaces the variables in a configuration. Throws ConfigError with the names of those, and of files, that are missing. */
const withVariables = (raw: unknown, environment: Environment): unknown => {
  const faults: string[] = [];
  const content = substitute(raw, environment, "", faults);
  if (faults.length > 0) {
    throw new ConfigError(faults);
  }
  return content;
};

const parseFile = (file: string): unknown => {
  try {
    return loadYaml().parse(readFileSync(file, "utf8"), YAML_OPTIONS);
  } catch (error) {
    // The lines after the first are an excerpt of the file. So is the name behind a colon. Both may contain secrets.
    const [line = ""] = errorText(error).split("\n", 1);
    const reason = line.replace(/: .*?(?= at line \d+, column \d+:$|$)/, "");
    throw new ConfigError([`${file}: ${reason}`]);
  }
};

const readFile = (file: string, environment: Environment): Record<string, unknown> => {
  const content = withVariables(parseFile(file), environment);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new ConfigError([`${file}: expected a mapping with the key "chains"`]);
  }
  return { ...content };
};

const listOf = (value: Arguments["values"][string]): readonly string[] => (Array.isArray(value) ? value : []);

const oneChain = ({ values }: Arguments): Record<string, unknown> => {
  const sockets = listOf(values["upstream-ws"]);
  const nodes = listOf(values.upstream).map((url, index) => {
    const wsUrl = sockets[index];
    return { url, ...(wsUrl !== undefined && { wsUrl }) };
  });
  return { chains: [{ name: "chain", nodes, pending: { feeds: listOf(values.feed) } }] };
};

/** Returns the chains that flags describe: one at URLs, or several at providers. */
const chainsOfFlags = (args: Arguments): Record<string, unknown> => {
  const { provider, chain } = args.values;
  if (provider === undefined) {
    return oneChain(args);
  }
  try {
    return { chains: createProviderChains(listOf(provider), listOf(chain)) };
  } catch (error) {
    throw new ConfigError([errorText(error)]);
  }
};

const SCALAR = /^(?:true|false|(?:0|[1-9]\d*)(?:\.\d+)?)$/;

/** Returns a copy of `value` whose text at the path is parsed as a number or boolean. */
const typedAt = (value: unknown, [key, ...rest]: readonly PropertyKey[]): unknown => {
  if (key === undefined) {
    return typeof value === "string" && SCALAR.test(value) ? JSON.parse(value) : value;
  }
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => (index === key ? typedAt(item, rest) : item));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, item]): [string, unknown] => [name, name === key ? typedAt(item, rest) : item]),
  );
};

/**
 * Validates a configuration.
 * A text is parsed as number or boolean if the schema requires that, for flags and variables.
 */
const parseConfig = (raw: unknown) => {
  const result = configSchema.safeParse(raw);
  if (result.success) {
    return result;
  }
  const mistyped = result.error.issues.filter(({ code }) => code === "invalid_type" || code === "invalid_union");
  return configSchema.safeParse(mistyped.reduce((typed, { path }) => typedAt(typed, path), raw));
};

const section = (value: unknown): object => (typeof value === "object" && value !== null ? value : {});

/** Reads the configuration. Flags override the file. Throws ConfigError with all faults. */
export const readConfig = (args: Arguments, environment: Environment): Config => {
  const { values } = args;
  const file = typeof values.config === "string" ? values.config : undefined;
  const sources = ["upstream", "provider", "config"].filter((name) => values[name] !== undefined);
  if (sources.length === 0) {
    throw new ConfigError(["--upstream URL, --provider NAME:KEY or --config FILE is required (forebay --help)"]);
  }
  if (sources.length > 1) {
    throw new ConfigError([`${sources.map((name) => `--${name}`).join(" and ")} cannot be combined`]);
  }
  const raw = file === undefined ? chainsOfFlags(args) : readFile(file, environment);
  const flags = {
    server: {
      host: values.host,
      port: values.port,
      opsHost: values["ops-host"],
      opsPort: values["ops-port"],
      dataDir: values["data-dir"],
    },
    cache: { redis: values.redis },
    log: { level: values["log-level"] },
  };
  for (const [key, part] of Object.entries(flags)) {
    const present = Object.entries(part).filter(([, value]) => value !== undefined);
    if (present.length > 0) {
      raw[key] = { ...section(raw[key]), ...Object.fromEntries(present) };
    }
  }
  return validate(raw, values);
};

/** Reads a configuration that is written as an object: the content of a file. Throws ConfigError with all faults. */
export const readConfigObject = (raw: unknown, environment: Environment): Config =>
  validate(withVariables(raw, environment), {});

/** Throws ConfigError with all faults. `values` are those of the flags. */
const validate = (raw: unknown, values: Arguments["values"]): Config => {
  const result = parseConfig(raw);
  if (result.success) {
    return result.data;
  }
  const unknownKeys = new UnknownKeys();
  throw new ConfigError(result.error.issues.flatMap((issue) => formatIssue(issue, values, unknownKeys)));
};

/** The flag that sets an option, by the option's path. */
const FLAGS: Readonly<Record<string, string>> = {
  "server.host": "host",
  "server.port": "port",
  "server.opsHost": "ops-host",
  "server.opsPort": "ops-port",
  "server.dataDir": "data-dir",
  "cache.redis": "redis",
  "log.level": "log-level",
};

const formatIssue = (
  issue: z.core.$ZodIssue,
  values: Arguments["values"],
  unknownKeys: UnknownKeys,
): readonly string[] => {
  const option = formatPath(issue.path);
  const flag = FLAGS[option];
  const variable = `FOREBAY_${(flag ?? "").replaceAll("-", "_").toUpperCase()}`;
  const subject = flag !== undefined && values[flag] !== undefined ? `${option} (--${flag} or ${variable})` : option;
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${subject}: ${unknownKeys.format(issue.path, key)}`);
  }
  const isNumber =
    issue.code === "invalid_type" && issue.expected === "number" && flag !== undefined && values[flag] !== undefined;
  return [`${subject}: ${isNumber ? `"${values[flag]}" is not a number` : issue.message}`];
};

const formatPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : formatMember(text, String(part))),
    "",
  ) || "(top level)";

/** Formats the JSON schema for editors and the Helm chart: the input side, with defaults. */
export const formatSchema = (): string => JSON.stringify(z.toJSONSchema(configSchema, { io: "input" }), null, 2);
