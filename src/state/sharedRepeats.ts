import { randomBytes } from "node:crypto";
import type { RunScript } from "../core/sharedValues.ts";
import type { StateCost } from "./stateCost.ts";

export interface SharedRepeatsOptions {
  readonly runScript: RunScript;
  readonly cost: Pick<StateCost, "recent" | "countOthers">;
  /** Replicas with other nodes cannot use each other's traces. */
  readonly nodes: readonly { readonly name: string; readonly origin: string }[];
}

/** Increased when the form or the meaning of the records changes. Other versions have another key. */
const FORMAT = 1;
const EXCHANGE_MS = 5_000;
/** A replica that has not said anything for this time has ended. */
const VALID_SECONDS = 15;

/** Stores the units of this replica, and returns the sum of the others. A field is a replica, with its time and units. */
const EXCHANGE = `local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], ARGV[1], now .. ':' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local fields = redis.call('HGETALL', KEYS[1])
local sum = 0
for i = 1, #fields, 2 do
  local at, units = string.match(fields[i + 1], '^(%d+):(%d+)$')
  if not at or now - tonumber(at) > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], fields[i])
  elseif fields[i] ~= ARGV[1] then
    sum = sum + tonumber(units)
  end
end
return sum`;

/**
 * Tells each replica how many units the reads of the others repeat. One write set serves all replicas, so that the reads of all
 * decide together whether it pays. Without Redis, each replica decides by its own reads.
 */
export class SharedRepeats {
  readonly #options: SharedRepeatsOptions;
  readonly #key: string;
  readonly #replica = randomBytes(9).toString("base64url");
  readonly #timer: NodeJS.Timeout;

  constructor(options: SharedRepeatsOptions) {
    const nodes = options.nodes.map(({ name, origin }) => `${origin}:${name}`).toSorted();
    this.#options = options;
    this.#key = `repeats${FORMAT}:${nodes.join(",")}`;
    this.#timer = setInterval(() => void this.exchange(), EXCHANGE_MS).unref();
  }

  /** Exchanges the units of the last minute with Redis. Never rejects. */
  async exchange(): Promise<void> {
    const { runScript, cost } = this.#options;
    const args = [this.#replica, Math.round(cost.recent.repeatedUnits), VALID_SECONDS];
    // The scripts count and log their failures.
    const sum = await runScript(EXCHANGE, this.#key, args).catch(() => 0);
    cost.countOthers(typeof sum === "number" ? sum : 0);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
