import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { RunScript } from "../core/sharedValues.ts";
import { probationProgress } from "./giverEvidence.ts";
import type { SourceTrust } from "./sourceTrust.ts";
import type { StateCost } from "./stateCost.ts";

export interface SharedProgressOptions {
  readonly runScript: RunScript;
  readonly cost: Pick<StateCost, "recent" | "countOthers">;
  readonly trust: Pick<SourceTrust, "evidenceOf">;
  /** Replicas with other nodes cannot use each other's traces. */
  readonly nodes: readonly { readonly name: string; readonly origin: string }[];
}

/** Increased when the form or the meaning of the records changes. Other versions have another key. */
const FORMAT = 1;
const EXCHANGE_MS = 5_000;
/** A replica that has not said anything for this time has ended. */
const VALID_SECONDS = 15;

/** Stores the record of this replica, and returns those of the others. A field is a replica, with its time and record. */
const EXCHANGE = `local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], now .. ':' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local fields = redis.call('HGETALL', KEYS[1])
local others = {}
for i = 1, #fields, 2 do
  local at, record = string.match(fields[i + 1], '^(%d+):(.*)$')
  if not at or now - tonumber(at) > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], fields[i])
  elseif fields[i] ~= ARGV[1] then
    others[#others + 1] = record
  end
end
return others`;

const REMOVE = "return redis.call('HDEL', KEYS[1], ARGV[1])";

const count = z.number().nonnegative();
const record = z.object({
  repeatedUnits: count,
  repeatedReads: count,
  /** What this replica has compared itself, by the name of the node. */
  probations: z.record(z.string(), probationProgress),
});

type ProgressRecord = z.infer<typeof record>;

const parse = (text: unknown): readonly ProgressRecord[] => {
  try {
    return [record.parse(JSON.parse(String(text)))];
  } catch {
    return [];
  }
};

/**
 * Tells each replica what the others are about to learn: what their reads repeat, and how far the probations of nodes are. One
 * write set serves all replicas, so that the reads of all decide whether it pays, and the comparisons of all end a probation.
 * Without Redis, each replica decides by its own.
 */
export class SharedProgress {
  readonly #options: SharedProgressOptions;
  readonly #key: string;
  readonly #replica = randomBytes(9).toString("base64url");
  readonly #timer: NodeJS.Timeout;

  constructor(options: SharedProgressOptions) {
    const nodes = options.nodes.map(({ name, origin }) => `${origin}:${name}`).toSorted();
    this.#options = options;
    this.#key = `progress${FORMAT}:${nodes.join(",")}`;
    this.#timer = setInterval(() => void this.exchange(), EXCHANGE_MS).unref();
  }

  /** Exchanges the records with Redis. Never rejects. */
  async exchange(): Promise<void> {
    const { runScript, cost, trust, nodes } = this.#options;
    const args = [this.#replica, JSON.stringify(this.#record()), VALID_SECONDS];
    // The scripts count and log their failures.
    const reply = await runScript(EXCHANGE, this.#key, args).catch(() => undefined);
    const others = Array.isArray(reply) ? reply.flatMap(parse) : [];
    const sum = (field: "repeatedUnits" | "repeatedReads") => others.reduce((total, other) => total + other[field], 0);
    cost.countOthers({ repeatedUnits: sum("repeatedUnits"), repeatedReads: sum("repeatedReads") });
    for (const { name } of nodes) {
      trust.evidenceOf(name).countOthers(others.flatMap(({ probations }) => probations[name] ?? []));
    }
  }

  /** The chain that replaces this one has a record of its own. */
  close(): void {
    clearInterval(this.#timer);
    void this.#options.runScript(REMOVE, this.#key, [this.#replica]).catch(() => undefined);
  }

  #record(): ProgressRecord {
    const { cost, trust, nodes } = this.#options;
    const { repeatedUnits, repeatedReads } = cost.recent;
    const probations = nodes.map(({ name }) => [name, trust.evidenceOf(name).ownProgress] as const);
    return { repeatedUnits, repeatedReads, probations: Object.fromEntries(probations) };
  }
}
