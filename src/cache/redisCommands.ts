import { hash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/sharedValues.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BatchedReads, type ReadCommand } from "./batchedReads.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { failureReason, type RedisHealth } from "./redisHealth.ts";
import { encodeValue, MAX_PLAIN_BYTES } from "./redisValue.ts";

/** What the reads and writes of a store share. */
export interface RedisLink {
  readonly client: Redis | Cluster;
  /** Deadline of each read and write. */
  readonly timeoutMs: number;
  readonly health: RedisHealth;
}

/** In a cluster, each key has its own slot and needs its own command. */
const sendReads = (client: Redis | Cluster, keys: readonly string[]): readonly ReadCommand[] =>
  client.isCluster
    ? keys.map((key) => ({ keys: 1, values: client.getBuffer(key).then((value) => [value]) }))
    : [{ keys: keys.length, values: client.mgetBuffer([...keys]).then(requireList) }];

/** Rejects a reply of another form. An error in a listener of the reply would end the process. */
const requireList = (values: unknown): readonly (Buffer | null)[] => {
  if (!Array.isArray(values)) {
    throw new TypeError("the reply to MGET is not a list");
  }
  return values;
};

/** Creates the reads of a store. */
export const createRedisReads = ({ client, timeoutMs, health }: RedisLink, { metrics }: Telemetry): BatchedReads =>
  new BatchedReads(
    {
      send: (keys) => sendReads(client, keys),
      timeoutMs,
      onTimeout: (reads) => health.failed("timeout", reads),
      onSuccess: (startMs) => health.succeeded(startMs),
      onError: (error, reads) => health.failed(failureReason(error), reads, error),
    },
    () => metrics.redisErrors.inc({ reason: "corrupt" }),
  );

const MAX_WRITES_IN_FLIGHT = 1_024;
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
/** A longer value would delay the commands behind it on the connection. */
const MAX_VALUE_BYTES = 8 * 1024 * 1024;

/** Writes entries. */
export class RedisWrites {
  readonly #link: RedisLink;
  #inFlight = 0;
  #bytesInFlight = 0;

  constructor(link: RedisLink) {
    this.#link = link;
  }

  /** Whether a write of this size must wait for others. */
  isFull(bytes: number): boolean {
    return this.#inFlight >= MAX_WRITES_IN_FLIGHT || this.#bytesInFlight + bytes > MAX_BYTES_IN_FLIGHT;
  }

  /** Writes an entry. Resolves at its end. Failures are counted. */
  write(key: string, entry: CacheEntry, seconds: number): Promise<void> {
    return this.#track(entry.body.byteLength, this.#encodeAndSet(key, entry, seconds));
  }

  /** Removes an entry in the background. Failures are counted. */
  remove(key: string): void {
    const { client } = this.#link;
    void this.#track(
      0,
      this.#send(() => client.del(key)),
    );
  }

  #track(bytes: number, sent: Promise<void>): Promise<void> {
    this.#inFlight += 1;
    this.#bytesInFlight += bytes;
    return sent
      .catch((error: unknown) => this.#link.health.failed(failureReason(error), 1, error))
      .finally(() => {
        this.#inFlight -= 1;
        this.#bytesInFlight -= bytes;
      });
  }

  async #encodeAndSet(key: string, entry: CacheEntry, seconds: number): Promise<void> {
    if (entry.body.byteLength > MAX_PLAIN_BYTES) {
      return;
    }
    const startMs = performance.now();
    const value = await encodeValue(key, entry);
    if (value.byteLength <= MAX_VALUE_BYTES) {
      const { client } = this.#link;
      await this.#send(() => client.set(key, value, "EX", seconds), startMs);
    }
  }

  /** `startMs`: the time from which the operation is measured. */
  async #send(command: () => Promise<unknown>, startMs?: number): Promise<void> {
    const { health, timeoutMs } = this.#link;
    const timer = setTimeout(() => health.failed("timeout", 1), timeoutMs);
    try {
      await command();
      health.succeeded(startMs);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** No other source can respond instead, so a script may take longer than a lookup. */
const SCRIPT_TIMEOUT_MS = 1_000;

const isUnknown = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

/** Runs scripts, each within a second; counts and logs their failures. */
export const createScripts = (client: Redis | Cluster, health: RedisHealth): RunScript => {
  /** The SHA-1 names of scripts, by their text. */
  const names = new Map<string, string>();

  const nameOf = (lua: string): string => {
    const name = names.get(lua) ?? hash("sha1", lua, "hex");
    names.set(lua, name);
    return name;
  };

  /** Sends the whole text to a server that does not know the script yet. */
  const send: RunScript = async (lua, key, args) => {
    try {
      return await client.evalsha(nameOf(lua), 1, key, ...args);
    } catch (error) {
      if (!isUnknown(error)) {
        throw error;
      }
      return client.eval(lua, 1, key, ...args);
    }
  };

  return (lua, key, args) =>
    new Promise((resolve, reject) => {
      const startMs = performance.now();
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        const error = new Error(`Redis did not respond to a script within ${SCRIPT_TIMEOUT_MS} ms`);
        health.failed("timeout", 1, error);
        reject(error);
      }, SCRIPT_TIMEOUT_MS);
      const onReply = (reply: unknown): void => {
        if (!isLate) {
          clearTimeout(timer);
          health.succeeded(startMs);
          resolve(reply);
        }
      };
      const onError = (error: unknown): void => {
        if (!isLate) {
          clearTimeout(timer);
          health.failed(failureReason(error), 1, error);
          reject(error);
        }
      };
      send(lua, key, args).then(onReply, onError);
    });
};
