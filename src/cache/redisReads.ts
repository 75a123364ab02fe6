import type { Cluster, Redis } from "ioredis";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { failureReason, type RedisHealth } from "./redisHealth.ts";

/** The keys of one command. */
const MAX_KEYS_PER_COMMAND = 128;

export interface RedisReadsOptions {
  readonly client: Redis | Cluster;
  /** A read that takes longer resolves to undefined. */
  readonly timeoutMs: number;
  readonly health: RedisHealth;
  readonly metrics: Pick<Telemetry["metrics"], "redisSeconds">;
}

interface Read {
  readonly key: string;
  readonly finish: (value: Buffer | undefined) => void;
}

interface Command {
  readonly reads: readonly Read[];
  readonly values: Promise<readonly (Buffer | null)[]>;
}

/** In a cluster, each key has its own slot and needs its own command. */
const sendCommands = (client: Redis | Cluster, reads: readonly Read[]): Command[] =>
  client.isCluster
    ? reads.map((read) => ({ reads: [read], values: client.getBuffer(read.key).then((value) => [value]) }))
    : [{ reads, values: client.mgetBuffer(reads.map(({ key }) => key)).then(requireList) }];

/** Rejects a reply of another form. An error in a listener of the reply would end the process. */
const requireList = (values: unknown): readonly (Buffer | null)[] => {
  if (!Array.isArray(values)) {
    throw new TypeError("the reply to MGET is not a list");
  }
  return values;
};

/** Reads sent at the same time. They have one deadline. */
class ReadBatch {
  readonly #reads: readonly Read[];
  readonly #options: RedisReadsOptions;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #unfinished: number;

  constructor(reads: readonly Read[], options: RedisReadsOptions) {
    this.#reads = reads;
    this.#options = options;
    this.#unfinished = reads.length;
    this.#timer = setTimeout(() => this.#onTimeout(), options.timeoutMs);
  }

  /** Sends the commands. Calls `onDone` with the number of reads of each, when its response arrives or it fails. */
  send(onDone: (reads: number) => void): void {
    for (const { reads, values } of sendCommands(this.#options.client, this.#reads)) {
      values.then(
        (buffers) => {
          onDone(reads.length);
          this.#onValues(reads, buffers);
        },
        (error: unknown) => {
          onDone(reads.length);
          this.#onError(reads, error);
        },
      );
    }
  }

  #onTimeout(): void {
    this.#options.health.failed("timeout", this.#unfinished);
    for (const read of this.#reads) {
      read.finish(undefined);
    }
    this.#unfinished = 0;
  }

  /** Returns false if the batch had its deadline already. */
  #countFinished(reads: readonly Read[]): boolean {
    if (this.#unfinished === 0) {
      return false;
    }
    this.#unfinished -= reads.length;
    if (this.#unfinished === 0) {
      clearTimeout(this.#timer);
    }
    return true;
  }

  #onValues(reads: readonly Read[], buffers: readonly (Buffer | null)[]): void {
    if (!this.#countFinished(reads)) {
      return;
    }
    const { health, metrics } = this.#options;
    health.succeeded();
    metrics.redisSeconds.observe({ operation: "get" }, (performance.now() - this.#startMs) / 1000);
    reads.forEach(({ finish }, index) => {
      finish(buffers[index] ?? undefined);
    });
  }

  #onError(reads: readonly Read[], error: unknown): void {
    if (!this.#countFinished(reads)) {
      return;
    }
    this.#options.health.failed(failureReason(error), reads.length, error);
    for (const { finish } of reads) {
      finish(undefined);
    }
  }
}

/** Sends the reads of one turn of the event loop in one command. */
export class RedisReads {
  readonly #options: RedisReadsOptions;
  #waiting: Read[] = [];
  #inFlight = 0;

  constructor(options: RedisReadsOptions) {
    this.#options = options;
  }

  /** The number of reads without a response, even if their deadline is over. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Returns the value of a key; undefined if it has none, if Redis fails, or at the deadline. Never rejects. */
  read(key: string): Promise<Buffer | undefined> {
    return new Promise((finish) => {
      this.#inFlight += 1;
      if (this.#waiting.push({ key, finish }) === 1) {
        setImmediate(() => this.#sendWaiting());
      }
    });
  }

  #sendWaiting(): void {
    const reads = this.#waiting;
    this.#waiting = [];
    for (let start = 0; start < reads.length; start += MAX_KEYS_PER_COMMAND) {
      const batch = new ReadBatch(reads.slice(start, start + MAX_KEYS_PER_COMMAND), this.#options);
      batch.send((done) => {
        this.#inFlight -= done;
      });
    }
  }
}
