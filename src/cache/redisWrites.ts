import type { Cluster, Redis } from "ioredis";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { failureReason, type RedisHealth } from "./redisHealth.ts";
import { encodeValue, MAX_PLAIN_BYTES } from "./redisValue.ts";

const MAX_IN_FLIGHT = 1_024;
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
/** A longer value would delay the commands behind it on the connection. */
const MAX_VALUE_BYTES = 8 * 1024 * 1024;

export interface RedisWritesOptions {
  readonly client: Redis | Cluster;
  readonly timeoutMs: number;
  readonly health: RedisHealth;
  readonly metrics: Pick<Telemetry["metrics"], "redisSeconds">;
}

/** Writes entries. Nobody waits for the result. */
export class RedisWrites {
  readonly #options: RedisWritesOptions;
  #inFlight = 0;
  #bytesInFlight = 0;

  constructor(options: RedisWritesOptions) {
    this.#options = options;
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
    const { client } = this.#options;
    this.#track(
      0,
      this.#send(() => client.del(key)),
    );
  }

  #track(bytes: number, sent: Promise<void>): void {
    this.#inFlight += 1;
    this.#bytesInFlight += bytes;
    void sent
      .catch((error: unknown) => this.#options.health.failed(failureReason(error), 1, error))
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
      const { client, metrics } = this.#options;
      await this.#send(() => client.set(key, value, "EX", seconds));
      metrics.redisSeconds.observe({ operation: "set" }, (performance.now() - startMs) / 1000);
    }
  }

  async #send(command: () => Promise<unknown>): Promise<void> {
    const { health, timeoutMs } = this.#options;
    const timer = setTimeout(() => health.failed("timeout", 1), timeoutMs);
    try {
      await command();
      health.succeeded();
    } finally {
      clearTimeout(timer);
    }
  }
}
