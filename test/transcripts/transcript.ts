import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * One step of a transcript. A transcript is a text file:
 * - `//` says why;
 * - `==` is an action of the chain, for example `== seal`;
 * - `>>` is a request;
 * - `<<` after it is its exact response (empty: none), once the actions between them are done;
 * - `<node` is the response of the node itself, if it differs.
 */
export type TranscriptStep =
  | { readonly kind: "comment" | "action" | "request"; readonly text: string }
  | { readonly kind: "response"; readonly text: string; readonly node?: string };

const PREFIXES = { comment: "//", action: "==", request: ">>", response: "<<", node: "<node" } as const;
const KINDS = Object.keys(PREFIXES) as (keyof typeof PREFIXES)[];

const parseTranscript = (text: string): readonly TranscriptStep[] => {
  const steps: TranscriptStep[] = [];
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const kind = KINDS.find((each) => line.startsWith(PREFIXES[each]));
    if (kind === undefined) {
      throw new Error(`not a line of a transcript: ${line}`);
    }
    const rest = line.slice(PREFIXES[kind].length + 1);
    if (kind !== "node") {
      steps.push({ kind, text: rest });
      continue;
    }
    const last = steps.pop();
    if (last?.kind !== "response") {
      throw new Error(`no response before: ${line}`);
    }
    steps.push({ ...last, node: rest });
  }
  return steps;
};

export const formatTranscript = (steps: readonly TranscriptStep[]): string =>
  steps
    .flatMap((step) => [
      `${PREFIXES[step.kind]} ${step.text}`,
      ...("node" in step && step.node !== undefined ? [`${PREFIXES.node} ${step.node}`] : []),
    ])
    .map((line) => `${line}\n`)
    .join("");

export interface Transcript {
  /** `<folder>/<case>`, without the ending. */
  readonly name: string;
  readonly file: string;
  readonly steps: readonly TranscriptStep[];
}

export const TRANSCRIPTS = import.meta.dirname;
const ENDING = ".io";

/** Reads the transcripts of a folder of `test/transcripts`, sorted by name. */
export const readTranscripts = (folder: string): readonly Transcript[] =>
  readdirSync(join(TRANSCRIPTS, folder))
    .filter((name) => name.endsWith(ENDING))
    .toSorted()
    .map((name) => {
      const file = join(TRANSCRIPTS, folder, name);
      const text = readFileSync(file, "utf8");
      return { name: `${folder}/${name.slice(0, -ENDING.length)}`, file, steps: parseTranscript(text) };
    });

/** Values that a transcript names `{{name}}`, because they differ in each run: ids of filters. */
export type Bindings = Map<string, string>;

const escapePattern = (text: string): string => text.replaceAll(/[$()*+./?[\\\]^{|}]/g, "\\$&");

const NAMED = /\{\{(\w+)\}\}/;

/** Replaces the named values of a request. */
export const bindRequest = (text: string, bindings: Bindings): string =>
  text.replaceAll(new RegExp(NAMED, "g"), (whole, name: string) => bindings.get(name) ?? whole);

/** Whether a response matches. A name that is new binds the response's value. */
export const matchesResponse = (actual: string, expected: string, bindings: Bindings): boolean => {
  const parts = expected.split(NAMED);
  const names = parts.filter((_, at) => at % 2 === 1);
  const pattern = parts.map((part, at) => {
    const value = at % 2 === 1 ? bindings.get(part) : part;
    return value === undefined ? '([^"]+)' : escapePattern(value);
  });
  const match = new RegExp(`^${pattern.join("")}$`).exec(actual);
  for (const [at, name] of names.filter((each) => !bindings.has(each)).entries()) {
    const value = match?.[at + 1];
    if (value !== undefined) {
      bindings.set(name, value);
    }
  }
  return match !== null;
};

/** Formats JSON with sorted keys: nodes differ in the order of members. An empty text stays empty. */
export const sortKeys = (text: string): string => {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(sorted);
    }
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value)
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, each]) => [key, sorted(each)]),
      );
    }
    return value;
  };
  return text === "" ? "" : JSON.stringify(sorted(JSON.parse(text)));
};
