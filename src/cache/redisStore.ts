import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/sharedValues.ts";
import type { QueueOwner } from "../limits/fairQueue.ts";
import type { RedisFailure } from "../telemetry/cacheMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { connectRedis, type RedisTls } from "./redisClient.ts";
import { failureReason, RedisHealth } from "./redisHealth.ts";
import { type RedisLink, RedisReads } from "./redisReads.ts";
import { createScripts } from "./redisScript.ts";
import { decodeValue, encodeValue, MAX_PLAIN_BYTES } from "./redisValue.ts";

const PING_MS = 2_000;

interface RedisPingOptions {
  readonly client: Redis | Cluster;
  readonly timeoutMs: number;
  readonly onResult: (isUp: boolean) => void;
}

/** Whether the server responds to PING in time. */
const isResponding = async ({ client, timeoutMs }: RedisPingOptions): Promise<boolean> => {
  if (client.status !== "ready") {
    return false;
  }
  const deadline = new Promise<false>((resolve) => setTimeout(resolve, timeoutMs, false).unref());
  return Promise.race([
    client.ping().then(
      () => true,
      () => false,
    ),
    deadline,
  ]);
};

/** Sends PING every two seconds, and at once after each connection. Returns the function that ends it. */
const pingRedis = (options: RedisPingOptions): (() => void) => {
  const ping = (): void => void isResponding(options).then(options.onResult);
  options.client.on("ready", ping).on("close", () => options.onResult(false));
  const timer = setInterval(ping, PING_MS).unref();
  return () => clearInterval(timer);
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
export class RedisStore {
  readonly run: RunScript;
  readonly #telemetry: Telemetry;
  readonly #client: Redis | Cluster;
  readonly #readHealth: RedisHealth;
  readonly #writeHealth: RedisHealth;
  readonly #reads: RedisReads;
  readonly #writes: RedisWrites;
  /** Concurrent reads of a key share one. */
  readonly #readsByKey = new Map<string, Promise<CacheEntry | undefined>>();
  readonly #endPing: () => void;
  #isClosed = false;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor({ url, timeoutMs, telemetry, tls }: RedisStoreOptions) {
    const { log, metrics } = telemetry;
    const client = connectRedis(url, "cache", log, tls);
    this.#telemetry = telemetry;
    this.#client = client;
    this.#readHealth = new RedisHealth("get", telemetry);
    this.#writeHealth = new RedisHealth("set", telemetry);
    this.#reads = new RedisReads({ client, timeoutMs, health: this.#readHealth });
    this.#writes = new RedisWrites({ client, timeoutMs, health: this.#writeHealth });
    this.run = createScripts(client, telemetry);
    metrics.redisUp.set(0);
    this.#endPing = pingRedis({
      client,
      timeoutMs,
      onResult: (isUp) => metrics.redisUp.set(isUp && !this.#readHealth.isFailing ? 1 : 0),
    });
    client.on("end", () => this.#reconnectLater());
  }

  /** Returns an entry, or undefined after the deadline. Never rejects. Default of `owner`: no client. */
  get(key: string, owner?: QueueOwner): Promise<CacheEntry | undefined> {
    const pending = this.#readsByKey.get(key);
    if (pending !== undefined) {
      return pending;
    }
    const reason = this.#rejectReason(this.#reads.isFull(owner));
    if (reason !== undefined) {
      this.#readHealth.failed(reason, 1);
      return Promise.resolve(undefined);
    }
    const entry = this.#read(key, owner).finally(() => this.#readsByKey.delete(key));
    this.#readsByKey.set(key, entry);
    return entry;
  }

  /** Writes an entry in the background. */
  set(key: string, entry: CacheEntry, seconds: number): void {
    if (this.#mayWrite(entry.body.byteLength)) {
      this.#writes.write(key, entry, seconds);
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
    this.#endPing();
    clearTimeout(this.#reconnectTimer);
    this.#client.disconnect();
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

  async #read(key: string, owner: QueueOwner | undefined): Promise<CacheEntry | undefined> {
    const value = await this.#reads.read(key, owner);
    if (value === undefined) {
      return undefined;
    }
    const entry = await decodeValue(key, value).catch(() => undefined);
    if (entry === undefined) {
      this.#telemetry.metrics.redisErrors.inc({ reason: "corrupt" });
    }
    return entry;
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

const MAX_IN_FLIGHT = 1_024;
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
/** A longer value would delay the commands behind it on the connection. */
const MAX_VALUE_BYTES = 8 * 1024 * 1024;

/** Writes entries. Nobody waits for the result. */
class RedisWrites {
  readonly #link: RedisLink;
  #inFlight = 0;
  #bytesInFlight = 0;

  constructor(link: RedisLink) {
    this.#link = link;
  }

  /** Whether a write of this size must wait for others. */
  isFull(bytes: number): boolean {
    return this.#inFlight >= MAX_IN_FLIGHT || this.#bytesInFlight + bytes > MAX_BYTES_IN_FLIGHT;
  }

  /** Writes an entry in the background. Failures are counted. */
  write(key: string, entry: CacheEntry, seconds: number): void {
    this.#track(entry.body.byteLength, this.#encodeAndSet(key, entry, seconds));
  }

  /** Removes an entry in the background. Failures are counted. */
  remove(key: string): void {
    const { client } = this.#link;
    this.#track(
      0,
      this.#send(() => client.del(key)),
    );
  }

  #track(bytes: number, sent: Promise<void>): void {
    this.#inFlight += 1;
    this.#bytesInFlight += bytes;
    void sent
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
