import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { formatMasked } from "../../../src/config/maskConfig.ts";
import { ConfigError, readArguments, readConfig } from "../../../src/config/readConfig.ts";
import { readCorpus } from "../engine/corpus.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

/** Part of every credential in the corpus. No output may contain it. It is no word, so that it is never a whole key. */
const SECRET = "s3!cret";
const WORDS = [
  "chains:",
  "nodes:",
  "url:",
  "\n",
  "  ",
  "- ",
  "&a ",
  "*a",
  "<<: ",
  "!!js",
  "${A:-b}",
  "${",
  "|\n",
  "null",
  "'",
];
/** Options that may contain a credential, and the others. */
const URL_OPTIONS = ["upstream", "upstream-ws", "provider", "redis", "feed"];
const OTHER_OPTIONS = ["chain", "port", "ops-port", "host", "ops-host", "log-level"];
const URL_VALUES = [
  ...[
    "http://user:s3!cret@localhost:8545/",
    "wss://h/s3!cret",
    "redis://:s3!cret@h:1",
    "alchemy:s3!cret",
    "infura:s3!cret",
  ],
  ...["redis+sentinel://:s3!cret@a,b/n", "redis+cluster://user:s3!cret@a:1,b:2", "http://[/s3!cret"],
];
const OTHER_VALUES = [
  "0",
  "8545",
  "-1",
  "70000",
  "",
  "x",
  "1e3",
  "info",
  "127.0.0.1",
  "::1",
  "op",
  "base,op",
  ":",
  ",",
];

const optionOf = (choices: Choices): readonly [string, string] =>
  choices.chance(0.5)
    ? [choices.pick(URL_OPTIONS), choices.pick(choices.chance(0.8) ? URL_VALUES : OTHER_VALUES)]
    : [choices.pick(OTHER_OPTIONS), choices.pick(OTHER_VALUES)];

const argumentsOf = (choices: Choices): readonly string[] =>
  Array.from({ length: choices.below(5) }, () => optionOf(choices)).flatMap(([name, value]) => [`--${name}`, value]);

const environmentOf = (choices: Choices): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from({ length: choices.below(3) }, () => optionOf(choices)).map(([name, value]) => [
      `FOREBAY_${name.replaceAll("-", "_").toUpperCase()}`,
      value,
    ]),
  );

/** Configuration files, flags and variables. Each is read, or refused with a ConfigError without a credential. */
export const createTarget: CreateTarget = async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "forebay-fuzz-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "config.yaml");
  const corpus = readCorpus("config");
  const values: readonly unknown[] = corpus.map((text) => parse(text.toString()));

  const textOf = (choices: Choices): string => {
    if (choices.chance(0.4)) {
      return mutateBytes(choices.pick(corpus), choices, WORDS).toString("latin1");
    }
    let value = choices.pick(values);
    for (let count = choices.below(4); count > 0; count--) {
      value = mutateJson(value, choices);
    }
    return stringify(value);
  };

  return {
    run: (choices) => {
      const isFile = choices.chance(0.7);
      const text = isFile ? textOf(choices) : "";
      const flags = [...argumentsOf(choices), ...(isFile ? ["--config", file] : [])];
      const environment = environmentOf(choices);
      const input = `${JSON.stringify({ flags, environment })}\n${text}`;
      if (isFile) {
        writeFileSync(file, text);
      }
      try {
        const masked = formatMasked(readConfig(readArguments(flags, environment), environment));
        if (masked.includes(SECRET)) {
          throw new Finding(`a credential in the active configuration: ${masked}`, input);
        }
      } catch (error) {
        if (error instanceof Finding) {
          throw error;
        }
        if (!(error instanceof ConfigError)) {
          throw new Finding(`not a ConfigError: ${String(error)}`, input, error);
        }
        if (error.message.includes(SECRET)) {
          throw new Finding(`a credential in an error: ${error.message}`, input);
        }
      }
    },
  };
};
