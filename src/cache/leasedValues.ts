import { randomBytes } from "node:crypto";
import type { RunScript } from "../core/sharedValues.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { decodeValue, encodeValue } from "./redisValue.ts";

/** A key has a value in base64, or the lease of the replica that makes it. Replies to scripts are texts. */
const LEASE = "lease:";
const TAKEN = "taken";

/** A take without a reply is released after this time: a connection was lost with it, and Redis must work again. */
const LOST_TAKE_MS = 3_000;

const TAKE = `local value = redis.call('GET', KEYS[1])
if value then
  return value
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')
return '${TAKEN}'`;

/** A lease that has expired stores nothing: another replica may have it. */
const STORE = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1`;

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1`;

/** The right to make a value, for a short time. Its holder either stores the value or releases the lease. Neither rejects. */
export interface ValueLease {
  /** Stores the value, unless the lease has expired. */
  store(entry: CacheEntry, seconds: number): Promise<void>;
  release(): Promise<void>;
}

/** "held": another replica makes the value now. */
export type Taken = ValueLease | CacheEntry | "held";

export const isValueLease = (taken: ValueLease | CacheEntry): taken is ValueLease => "release" in taken;

/** Values in Redis that one replica makes for all. Keys are those of one chain. */
export class LeasedValues {
  readonly #run: RunScript;

  constructor(run: RunScript) {
    this.#run = run;
  }

  /** Returns the value, or else a lease if no replica has one. Rejects if Redis fails. */
  async take(key: string, leaseMs: number): Promise<Taken> {
    const lease = this.#createLease(key);
    let reply: unknown;
    try {
      reply = await this.#run(TAKE, key, [lease.token, leaseMs]);
    } catch (error) {
      // The script may have run, or runs when a Redis that hangs works again.
      setTimeout(() => void lease.release(), LOST_TAKE_MS).unref();
      throw error;
    }
    if (reply === TAKEN) {
      return lease;
    }
    if (typeof reply !== "string" || reply.startsWith(LEASE)) {
      return "held";
    }
    // A value of another form is there until it expires.
    return (await decodeValue(key, Buffer.from(reply, "base64")).catch(() => undefined)) ?? "held";
  }

  #createLease(key: string): ValueLease & { readonly token: string } {
    const token = `${LEASE}${randomBytes(9).toString("base64url")}`;
    const run = async (script: string, args: readonly (string | number)[]): Promise<void> => {
      // The scripts count and log their failures. The lease expires then.
      await this.#run(script, key, [token, ...args]).catch(() => undefined);
    };
    return {
      token,
      store: async (entry, seconds) => {
        const value = await encodeValue(key, entry);
        await run(STORE, [value.toString("base64"), seconds]);
      },
      release: () => run(RELEASE, []),
    };
  }
}
