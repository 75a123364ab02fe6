import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/sharedValues.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import type { RedisFailure } from "../telemetry/cacheMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { BatchedReads } from "./batchedReads.ts";
import type { CacheEntry, EntryStore } from "./cacheEntry.ts";
import { connectRedis, type RedisTls } from "./redisClient.ts";
import { createRedisReads, createScripts, RedisWrites } from "./redisCommands.ts";
import { RedisHealth } from "./redisHealth.ts";

/** PING is sent at this interval, and at once after each connection. */
const PING_MS = 2_000;

/** Whether the server responds to PING in time. */
const isResponding = (client: Redis | Cluster, timeoutMs: number): Promise<boolean> => {
  if (client.status !== "ready") {
    return Promise.resolve(false);
  }
  const deadline = new Promise<false>((resolve) => setTimeout(resolve, timeoutMs, false).unref());
  const reply = client.ping().then(
    () => true,
    () => false,
  );
  return Promise.race([reply, deadline]);
};

export interface RedisStoreOptions {
  /** See `parseRedisUrl`. */
  readonly url: string;
  /** Deadline of each read and write. */
  readonly timeoutMs: number;
  readonly telemetry: Telemetry;
  readonly tls?: RedisTls;
}

const RECONNECT_MS = 1_000;

/** Entries that replicas share. A failure of any kind is a cache miss. It connects in the background. */
export class RedisStore implements EntryStore {
  readonly name = "redis";
  readonly run: RunScript;
  /** Deadline of each read and write. */
  readonly timeoutMs: number;
  readonly #telemetry: Telemetry;
  readonly #client: Redis | Cluster;
  readonly #readHealth: RedisHealth;
  readonly #writeHealth: RedisHealth;
  readonly #scriptHealth: RedisHealth;
  readonly #reads: BatchedReads;
  readonly #writes: RedisWrites;
  readonly #ping: NodeJS.Timeout;
  #isClosed = false;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor({ url, timeoutMs, telemetry, tls }: RedisStoreOptions) {
    const { log, metrics } = telemetry;
    const client = connectRedis(url, "cache", log, tls);
    this.#telemetry = telemetry;
    this.timeoutMs = timeoutMs;
    this.#client = client;
    const report = (isUp: boolean) => metrics.redisUp.set(isUp && !this.#isFailing ? 1 : 0);
    const onOutcome = () => report(client.status === "ready");
    this.#readHealth = new RedisHealth("get", telemetry, onOutcome);
    this.#writeHealth = new RedisHealth("set", telemetry, onOutcome);
    this.#scriptHealth = new RedisHealth("script", telemetry, onOutcome);
    this.#reads = createRedisReads({ client, timeoutMs, health: this.#readHealth }, telemetry);
    this.#writes = new RedisWrites({ client, timeoutMs, health: this.#writeHealth });
    this.run = createScripts(client, this.#scriptHealth);
    metrics.redisUp.set(0);
    const ping = (): void => void isResponding(client, timeoutMs).then(report);
    this.#ping = setInterval(ping, PING_MS).unref();
    client.on("ready", ping).on("close", () => report(false));
    client.on("end", () => this.#reconnectLater());
  }

  /** Returns an entry, or undefined after the deadline. Never rejects. Default of `owner`: no client. */
  get(key: string, owner?: QueueOwner): Promise<CacheEntry | undefined> {
    const pending = this.#reads.pending(key);
    if (pending !== undefined) {
      return pending;
    }
    const reason = this.#rejectReason(this.#reads.isFull(owner));
    if (reason !== undefined) {
      this.#readHealth.failed(reason, 1);
      return Promise.resolve(undefined);
    }
    return this.#reads.read(key, owner);
  }

  /** Writes an entry. Resolves when it is written, or cannot be. Never rejects. */
  async set(key: string, entry: CacheEntry, seconds: number): Promise<void> {
    if (this.#mayWrite(entry.body.byteLength)) {
      await this.#writes.write(key, entry, seconds);
    }
  }

  /** Removes an entry in the background. */
  delete(key: string): void {
    if (this.#mayWrite(0)) {
      this.#writes.remove(key);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#ping);
    clearTimeout(this.#reconnectTimer);
    this.#client.disconnect();
  }

  /** A server that rejects all writes is of no use, although it answers reads. */
  get #isFailing(): boolean {
    return this.#readHealth.isFailing || this.#writeHealth.isFailing || this.#scriptHealth.isFailing;
  }

  /** ioredis stops to reconnect in a few cases, such as a master that disappears while its address is resolved. */
  #reconnectLater(): void {
    if (this.#isClosed) {
      return;
    }
    const reconnect = (): void => {
      this.#client
        .connect()
        .catch((err: unknown) => this.#telemetry.log.debug({ err }, "Redis is not connected again yet"));
    };
    this.#reconnectTimer = setTimeout(reconnect, RECONNECT_MS).unref();
  }

  #mayWrite(bytes: number): boolean {
    const reason = this.#rejectReason(this.#writes.isFull(bytes));
    if (reason !== undefined) {
      this.#writeHealth.failed(reason, 1);
    }
    return reason === undefined;
  }

  /** Returns the reason to send no command now, or undefined. */
  #rejectReason(isFull: boolean): RedisFailure | undefined {
    if (this.#client.status !== "ready") {
      return "disconnected";
    }
    if (isFull) {
      return "overloaded";
    }
    return this.#readHealth.isPaused ? "paused" : undefined;
  }
}
