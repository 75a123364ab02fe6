import { setTimeout as wait } from "node:timers/promises";
import type { QueueOwner } from "../limits/fairQueue.ts";
import type { DataStorage } from "../storage/dataStorage.ts";
import { type EntryChange, partOf } from "../storage/entryDatabase.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BatchedReads } from "./batchedReads.ts";
import type { CacheEntry, EntryStore } from "./cacheEntry.ts";
import { encodeValue, MAX_PLAIN_BYTES } from "./redisValue.ts";

/** Deadline of a read. A node takes no longer, and a disk that is this slow is busy. */
const TIMEOUT_MS = 50;
/** The disk counts as slow after this many reads in a row that had no response in time. Then nothing is read for a while. */
const TIMEOUTS_TO_PAUSE = 8;
const PAUSE_MS = 500;

/** Entries are written together after this time, or at this size. A killed process loses them. */
const WRITE_DELAY_MS = 100;
const BATCH_BYTES = 256 * 1024;
/** Limit for the last writes at the end of the process. */
const CLOSE_MS = 2_000;
/** Bytes that wait to be written. Further entries are not stored. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
const MAX_VALUE_BYTES = 8 * 1024 * 1024;
/** An entry is at most this part of the folder, so that it does not evict most of the others. */
const MAX_SHARE = 1 / 32;

export type EntryStorage = Pick<DataStorage, "isOpen" | "read" | "write">;

/** The entries of the data folder, in the format of Redis. A failure of any kind is a miss. */
export class DiskStore implements EntryStore {
  readonly name = "disk";
  readonly #storage: EntryStorage;
  readonly #telemetry: Telemetry;
  readonly #reads: BatchedReads;
  readonly #writes: DiskWrites;
  #timeouts = 0;
  #pausedUntilMs = 0;

  constructor(storage: EntryStorage, maxBytes: number, telemetry: Telemetry) {
    const { diskErrors } = telemetry.metrics;
    this.#storage = storage;
    this.#telemetry = telemetry;
    this.#reads = new BatchedReads(
      {
        send: (keys) => [{ keys: keys.length, values: storage.read(keys) }],
        timeoutMs: TIMEOUT_MS,
        onTimeout: (reads) => this.#onTimeout(reads),
        onSuccess: () => this.#onSuccess(),
        onError: (_, reads) => diskErrors.inc({ reason: "other" }, reads),
      },
      () => diskErrors.inc({ reason: "corrupt" }),
    );
    this.#writes = new DiskWrites({
      storage,
      maxValueBytes: Math.min(MAX_VALUE_BYTES, maxBytes * MAX_SHARE),
      pendingRead: (key) => this.#reads.pending(key),
      telemetry,
    });
  }

  async get(key: string, owner?: QueueOwner): Promise<CacheEntry | undefined> {
    if (this.#writes.isRemoving(key)) {
      return undefined;
    }
    const shared = this.#reads.pending(key);
    if (shared === undefined && !this.#canRead(key, owner)) {
      return undefined;
    }
    const read = await (shared ?? this.#reads.read(key, owner));
    // It may have been removed during the read.
    return this.#writes.isRemoving(key) ? undefined : read;
  }

  set(key: string, entry: CacheEntry, seconds: number): void {
    if (this.#storage.isOpen(partOf(key))) {
      this.#writes.add(key, entry, seconds);
    }
  }

  delete(key: string): void {
    this.#writes.remove(key);
  }

  /** Resolves when the entries that wait are written, or after CLOSE_MS. */
  async close(): Promise<void> {
    const written = new AbortController();
    const timeout = wait(CLOSE_MS, undefined, { signal: written.signal }).catch(() => undefined);
    await Promise.race([this.#writes.flush(), timeout]);
    written.abort();
  }

  #canRead(key: string, owner: QueueOwner | undefined): boolean {
    if (!this.#storage.isOpen(partOf(key)) || performance.now() < this.#pausedUntilMs) {
      return false;
    }
    const isFull = this.#reads.isFull(owner);
    if (isFull) {
      this.#telemetry.metrics.diskErrors.inc({ reason: "overloaded" });
    }
    return !isFull;
  }

  #onTimeout(reads: number): void {
    const { metrics, log } = this.#telemetry;
    metrics.diskErrors.inc({ reason: "timeout" }, reads);
    this.#timeouts++;
    if (this.#timeouts < TIMEOUTS_TO_PAUSE) {
      return;
    }
    this.#pausedUntilMs = performance.now() + PAUSE_MS;
    if (this.#timeouts === TIMEOUTS_TO_PAUSE) {
      log.warn({ timeoutMs: TIMEOUT_MS }, "the data folder is slow: continuing without it");
    }
  }

  #onSuccess(): void {
    if (this.#timeouts >= TIMEOUTS_TO_PAUSE) {
      this.#telemetry.log.info("the data folder responds in time again");
    }
    this.#timeouts = 0;
  }
}

interface QueuedChange {
  /** Undefined: an entry that is not stored after all. */
  readonly change: Promise<EntryChange | undefined> | EntryChange;
  readonly bytes: number;
}

interface DiskWritesOptions {
  readonly storage: EntryStorage;
  readonly maxValueBytes: number;
  /** Returns the read of a key that is in flight. */
  pendingRead(key: string): Promise<unknown> | undefined;
  readonly telemetry: Telemetry;
}

/** Writes entries in batches, in the order of the calls. Nobody waits for the result. */
class DiskWrites {
  readonly #options: DiskWritesOptions;
  /** By key: the removals that are not written, or that a read in flight may have missed. */
  readonly #removals = new Map<string, number>();
  #queue: QueuedChange[] = [];
  /** Of the queue, and of the batch that is written now. */
  #queuedBytes = 0;
  #batchBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #written = Promise.resolve();

  constructor(options: DiskWritesOptions) {
    this.#options = options;
  }

  /** Whether the value that a read returns may be one that was removed. */
  isRemoving(key: string): boolean {
    return this.#removals.has(key);
  }

  add(key: string, entry: CacheEntry, seconds: number): void {
    const bytes = entry.body.byteLength;
    if (bytes > MAX_PLAIN_BYTES) {
      return;
    }
    if (this.#queuedBytes + bytes > MAX_QUEUED_BYTES) {
      this.#options.telemetry.metrics.diskErrors.inc({ reason: "overloaded" });
      return;
    }
    this.#enqueue({ change: this.#encode(key, entry, Date.now() + seconds * 1000), bytes });
  }

  remove(key: string): void {
    this.#removals.set(key, (this.#removals.get(key) ?? 0) + 1);
    this.#enqueue({ change: { key, value: undefined, expiresMs: 0 }, bytes: 0 });
  }

  /** Writes the queue. Resolves when it is written. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#queue;
    this.#queue = [];
    this.#batchBytes = 0;
    if (batch.length > 0) {
      this.#written = this.#written.then(() => this.#write(batch));
    }
    return this.#written;
  }

  #enqueue(queued: QueuedChange): void {
    this.#queue.push(queued);
    this.#count(queued.bytes);
    this.#batchBytes += queued.bytes;
    if (this.#batchBytes >= BATCH_BYTES) {
      void this.flush();
    } else {
      this.#timer ??= setTimeout(() => void this.flush(), WRITE_DELAY_MS).unref();
    }
  }

  async #encode(key: string, entry: CacheEntry, expiresMs: number): Promise<EntryChange | undefined> {
    const value = await encodeValue(key, entry).catch(() => undefined);
    return value !== undefined && value.byteLength <= this.#options.maxValueBytes
      ? { key, value, expiresMs }
      : undefined;
  }

  async #write(batch: readonly QueuedChange[]): Promise<void> {
    const { storage } = this.#options;
    const changes = (await Promise.all(batch.map(({ change }) => change))).filter((change) => change !== undefined);
    await storage.write(changes);
    for (const { key } of changes.filter(({ value }) => value === undefined)) {
      void this.#endRemoval(key);
    }
    this.#count(-batch.reduce((sum, { bytes }) => sum + bytes, 0));
  }

  async #endRemoval(key: string): Promise<void> {
    await this.#options.pendingRead(key);
    const others = (this.#removals.get(key) ?? 0) - 1;
    if (others > 0) {
      this.#removals.set(key, others);
    } else {
      this.#removals.delete(key);
    }
  }

  #count(bytes: number): void {
    this.#queuedBytes += bytes;
    this.#options.telemetry.metrics.diskQueueBytes.set(this.#queuedBytes);
  }
}
