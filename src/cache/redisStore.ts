import { Cluster, type Redis as Single } from "ioredis";
import type { RunScript } from "../core/runScript.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { createRedisClient, type RedisTls } from "./redisClient.ts";
import { createRedisHealth, type FailureReason, failureReason } from "./redisHealth.ts";
import { createScripts } from "./redisScript.ts";
import { parseRedisUrl } from "./redisUrl.ts";
import { decodeValue, encodeValue } from "./redisValue.ts";

/** Entries that replicas share. A failure of any kind is a miss. */
export interface RedisStore {
  /** Never rejects, and never takes longer than the deadline by much. */
  get(key: string): Promise<CacheEntry | undefined>;
  /** Returns at once; nobody waits for the outcome. */
  set(key: string, entry: CacheEntry, seconds: number): void;
  readonly run: RunScript;
  close(): void;
}

export interface RedisStoreOptions {
  /** See `parseRedisUrl`. */
  readonly url: string;
  /** Everything is given up after this. */
  readonly timeoutMs: number;
  readonly telemetry: Telemetry;
  readonly tls?: RedisTls;
}

/** What is on its way at most, whether anybody still waits for it or not. */
const MAX_READS_IN_FLIGHT = 4_096;
const MAX_WRITES_IN_FLIGHT = 1_024;
const MAX_WRITE_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
/** One command asks for so many keys at most. */
const MAX_KEYS_A_COMMAND = 128;
/** A longer value would hold up those behind it on the connection. */
const MAX_VALUE_BYTES = 8 * 1024 * 1024;

const REVIVAL_MS = 1_000;

interface Read {
  readonly key: string;
  readonly finish: (value: Buffer | undefined) => void;
}

export const createRedisStore = ({ url, timeoutMs, telemetry, tls }: RedisStoreOptions): RedisStore => {
  const { log, metrics } = telemetry;
  const client = createRedisClient(parseRedisUrl(url), tls);
  const reads = createRedisHealth("get", telemetry);
  const writes = createRedisHealth("set", telemetry);
  const shared = new Map<string, Promise<CacheEntry | undefined>>();
  let waiting: Read[] = [];
  let readsInFlight = 0;
  let writesInFlight = 0;
  let writeBytesInFlight = 0;
  let isClosed = false;
  let revival: NodeJS.Timeout | undefined;

  // Connection errors come here as well as to the commands that they end, which count and log them.
  client.on("error", (err) => log.debug({ err }, "Redis connection error"));
  // ioredis gives up in a few cases (a master that goes away while it is being resolved); we do not.
  client.on("end", () => {
    if (!isClosed) revival = setTimeout(() => client.connect().catch(() => {}), REVIVAL_MS).unref();
  });

  /** Everything asked for in one turn of the event loop goes in one command; in a cluster each key goes to its own slot. */
  const sendWaiting = () => {
    const group = waiting;
    waiting = [];
    for (let start = 0; start < group.length; start += MAX_KEYS_A_COMMAND) {
      send(group.slice(start, start + MAX_KEYS_A_COMMAND));
    }
  };

  const send = (group: readonly Read[]) => {
    const startMs = performance.now();
    let unfinished = group.length;
    const timer = setTimeout(() => {
      reads.failed("timeout", unfinished);
      for (const read of group) read.finish(undefined);
      unfinished = 0;
    }, timeoutMs);
    const settle = (done: readonly Read[], act: () => void) => {
      readsInFlight -= done.length;
      if (unfinished === 0) return;
      unfinished -= done.length;
      if (unfinished === 0) clearTimeout(timer);
      act();
    };
    for (const { done, values } of readAll(client, group)) {
      values.then(
        (found) =>
          settle(done, () => {
            reads.succeeded();
            metrics.redisSeconds.observe({ operation: "get" }, (performance.now() - startMs) / 1000);
            done.forEach(({ finish }, index) => {
              finish(found[index] ?? undefined);
            });
          }),
        (err: unknown) =>
          settle(done, () => {
            reads.failed(failureReason(err), done.length, err);
            for (const { finish } of done) finish(undefined);
          }),
      );
    }
  };

  const readValue = (key: string): Promise<Buffer | undefined> =>
    new Promise((finish) => {
      readsInFlight += 1;
      if (waiting.push({ key, finish }) === 1) setImmediate(sendWaiting);
    });

  const read = async (key: string): Promise<CacheEntry | undefined> => {
    const value = await readValue(key);
    if (value === undefined) return undefined;
    const entry = await decodeValue(key, value).catch(() => undefined);
    if (entry === undefined) metrics.redisErrors.inc({ reason: "corrupt" });
    return entry;
  };

  const write = async (key: string, entry: CacheEntry, seconds: number): Promise<void> => {
    const startMs = performance.now();
    const value = await encodeValue(key, entry);
    if (value.byteLength > MAX_VALUE_BYTES) return;
    const late = setTimeout(() => writes.failed("timeout", 1), timeoutMs);
    try {
      await client.set(key, value, "EX", seconds);
      writes.succeeded();
      metrics.redisSeconds.observe({ operation: "set" }, (performance.now() - startMs) / 1000);
    } finally {
      clearTimeout(late);
    }
  };

  /** Why nothing is sent now, or undefined. */
  const refusal = (isFull: boolean): FailureReason | undefined => {
    if (client.status !== "ready") return "disconnected";
    if (isFull) return "overloaded";
    return reads.isPaused() ? "paused" : undefined;
  };

  return {
    get: (key) => {
      const found = shared.get(key);
      if (found !== undefined) return found;
      const refused = refusal(readsInFlight >= MAX_READS_IN_FLIGHT);
      if (refused !== undefined) {
        reads.failed(refused, 1);
        return Promise.resolve(undefined);
      }
      const entry = read(key).finally(() => shared.delete(key));
      shared.set(key, entry);
      return entry;
    },
    set: (key, entry, seconds) => {
      const bytes = entry.body.byteLength;
      const isFull = writesInFlight >= MAX_WRITES_IN_FLIGHT || writeBytesInFlight + bytes > MAX_WRITE_BYTES_IN_FLIGHT;
      const refused = refusal(isFull);
      if (refused !== undefined) return writes.failed(refused, 1);
      writesInFlight += 1;
      writeBytesInFlight += bytes;
      void write(key, entry, seconds)
        .catch((err: unknown) => writes.failed(failureReason(err), 1, err))
        .finally(() => {
          writesInFlight -= 1;
          writeBytesInFlight -= bytes;
        });
    },
    run: createScripts(client, telemetry),
    close: () => {
      isClosed = true;
      clearTimeout(revival);
      client.disconnect();
    },
  };
};

interface BulkRead {
  readonly done: readonly Read[];
  readonly values: Promise<readonly (Buffer | null)[]>;
}

const readAll = (client: Single | Cluster, group: readonly Read[]): BulkRead[] =>
  client instanceof Cluster
    ? group.map((read) => ({ done: [read], values: client.getBuffer(read.key).then((value) => [value]) }))
    : [{ done: group, values: client.mgetBuffer(group.map(({ key }) => key)) }];
