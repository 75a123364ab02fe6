import { z } from "zod";
import { configSchema } from "./schema.ts";

/** At most this number of characters differ between a misspelled key and its suggestion. */
const MAX_DISTANCE = 3;

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
}

/** Returns the Levenshtein distance of two short texts: characters to insert, delete or replace. */
const distanceOf = (left: string, right: string): number => {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [at, character] of [...left].entries()) {
    const next = [at + 1];
    for (let to = 1; to <= right.length; to++) {
      const replaced = (row[to - 1] ?? 0) + (right[to - 1] === character ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
};

/** Returns the keys that the schema knows at a path. */
const keysAt = (node: SchemaNode, [key, ...rest]: readonly PropertyKey[]): readonly string[] => {
  const variants = node.anyOf ?? [];
  if (key === undefined) {
    return [...Object.keys(node.properties ?? {}), ...variants.flatMap((variant) => keysAt(variant, []))];
  }
  const next = typeof key === "number" ? node.items : node.properties?.[String(key)];
  const below = next === undefined ? [] : keysAt(next, rest);
  return [...below, ...variants.flatMap((variant) => keysAt(variant, [key, ...rest]))];
};

/** Returns the known key at `path` that is most similar to `key`, or undefined. */
const similarKey = (schema: SchemaNode, path: readonly PropertyKey[], key: string): string | undefined => {
  const lower = key.toLowerCase();
  const [nearest] = keysAt(schema, path)
    .filter((known) => Math.abs(known.length - key.length) <= MAX_DISTANCE)
    .map((known) => ({ known, distance: distanceOf(lower, known.toLowerCase()) }))
    .filter(({ known, distance }) => distance <= Math.min(MAX_DISTANCE, known.length / 2))
    .sort((left, right) => left.distance - right.distance);
  return nearest?.known;
};

const WORD = /^[\w-]*/;

/** Cuts a key behind its first word. Without a colon behind a key, YAML takes the value as a part of the key, with its secrets. */
export const firstWord = (key: string): string => {
  const [word = ""] = WORD.exec(key) ?? [];
  return word === key ? key : `${word}…`;
};

/** Options of earlier versions, by their path without indexes, and what holds instead. */
const REMOVED: Readonly<Record<string, string>> = {
  "server.processes":
    "processes is removed: one process serves. Use replicas, on one machine with server.reusePort (docs/operate.md)",
  "access.jwt.algorithms":
    "algorithms is removed: any signature with a public key is accepted, if the issuer's keys are for it",
  "cache.unconfirmedMs":
    "unconfirmedMs is removed: with nodes of several providers, a value that no hash proves is served for ten minutes. Then another provider is asked",
  "chains.upstream.maxWaitMs":
    "maxWaitMs is removed: calls wait for a node to their deadline. upstream.maxWaiting is the number of calls that may wait",
  "chains.nodes.batch.maxWaitMs": "maxWaitMs is removed: calls of one turn of the event loop share a request",
  "chains.pending.askNodeNonce":
    "askNodeNonce is removed: the pending nonce counts what was sent through forebay, and with pending.mode: node it is the node's",
  "chains.customMethods":
    "customMethods is removed: a method that forebay does not know is forwarded unchanged, and never cached",
  "chains.state.agree":
    "agree is removed: reads.agree holds for state, calls and logs. With 2, each of them is read from two providers",
  "chains.logs.agree":
    "agree is removed: reads.agree holds for state, calls and logs. With 2, each of them is read from two providers",
  "chains.state.probation":
    "probation is removed: values of a trace answer once they passed a check with another provider's node, usually after a block",
  "chains.state.learning":
    "learning is removed: state.unitsPerMinute limits what learning and checks of values cost in a minute",
  "chains.state.never": "never is removed: state.follow: false reads the state of all accounts from nodes",
  "chains.simulate.enabled": "enabled is removed: forks: none executes nothing here, and forwards calls to nodes",
  "chains.simulate.compareShare":
    "compareShare is removed: no run is compared while forebay serves. simulate.engine: reference executes with the library",
};

/** Formats the faults of unknown keys, with the keys that were probably meant. */
export class UnknownKeys {
  #schema: SchemaNode | undefined;

  format(path: readonly PropertyKey[], key: string): string {
    const removed = REMOVED[[...path.filter((part) => typeof part !== "number"), key].join(".")];
    if (removed !== undefined) {
      return removed;
    }
    // It takes milliseconds, and a file may have many unknown keys.
    this.#schema ??= Object(z.toJSONSchema(configSchema, { io: "input" })) as SchemaNode;
    const similar = similarKey(this.#schema, path, key);
    return `unknown key "${firstWord(key)}"${similar === undefined ? "" : `: did you mean "${similar}"?`}`;
  }
}
