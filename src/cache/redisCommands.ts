import { hash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/sharedValues.ts";
import { FairQueue, INTERNAL_OWNER, type QueueOwner } from "../limits/fairQueue.ts";
import { FairShares } from "../limits/fairShares.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { failureReason, RedisHealth } from "./redisHealth.ts";
import { encodeValue, MAX_PLAIN_BYTES } from "./redisValue.ts";

/** The keys of one command. */
const MAX_KEYS_PER_COMMAND = 128;
/** Reads without a response, even if their deadline is over. One client may have half of them. */
const MAX_READS_IN_FLIGHT = 8_192;

/** What the reads and writes of a store share. */
export interface RedisLink {
  readonly client: Redis | Cluster;
  /** Deadline of each read and write. */
  readonly timeoutMs: number;
  readonly health: RedisHealth;
}

interface Read {
  readonly key: string;
  readonly clientId: string;
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
  readonly #link: RedisLink;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #unfinished: number;

  constructor(reads: readonly Read[], link: RedisLink) {
    this.#reads = reads;
    this.#link = link;
    this.#unfinished = reads.length;
    this.#timer = setTimeout(() => this.#onTimeout(), link.timeoutMs);
  }

  /** Sends the commands. Calls `onDone` with the reads of each, when its response arrives or it fails. */
  send(onDone: (reads: readonly Read[]) => void): void {
    for (const { reads, values } of sendCommands(this.#link.client, this.#reads)) {
      values.then(
        (buffers) => {
          onDone(reads);
          this.#onValues(reads, buffers);
        },
        (error: unknown) => {
          onDone(reads);
          this.#onError(reads, error);
        },
      );
    }
  }

  #onTimeout(): void {
    this.#link.health.failed("timeout", this.#unfinished);
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
    this.#link.health.succeeded(this.#startMs);
    reads.forEach(({ finish }, index) => {
      finish(buffers[index] ?? undefined);
    });
  }

  #onError(reads: readonly Read[], error: unknown): void {
    if (!this.#countFinished(reads)) {
      return;
    }
    this.#link.health.failed(failureReason(error), reads.length, error);
    for (const { finish } of reads) {
      finish(undefined);
    }
  }
}

/** Sends the reads of one turn of the event loop in one command. Reads of several commands are sent in turns of the clients. */
export class RedisReads {
  readonly #link: RedisLink;
  readonly #waiting = new FairQueue<Read>();
  readonly #places = new FairShares(MAX_READS_IN_FLIGHT);

  constructor(link: RedisLink) {
    this.#link = link;
  }

  /** Whether this client has too many reads in flight, or all clients together have. */
  isFull({ clientId }: QueueOwner = INTERNAL_OWNER): boolean {
    return !this.#places.fits(clientId, 1);
  }

  /** Returns the value of a key; undefined if it has none, if Redis fails, or at the deadline. Never rejects. */
  read(key: string, owner: QueueOwner = INTERNAL_OWNER): Promise<Buffer | undefined> {
    const { clientId } = owner;
    return new Promise((finish) => {
      this.#places.take(clientId, 1);
      this.#waiting.add(owner, { key, clientId, finish });
      if (this.#waiting.size === 1) {
        setImmediate(() => this.#sendWaiting());
      }
    });
  }

  #sendWaiting(): void {
    while (this.#waiting.size > 0) {
      const batch = new ReadBatch(this.#takeReads(), this.#link);
      batch.send((done) => {
        for (const { clientId } of done) {
          this.#places.release(clientId, 1);
        }
      });
    }
  }

  #takeReads(): readonly Read[] {
    const reads: Read[] = [];
    while (reads.length < MAX_KEYS_PER_COMMAND) {
      const read = this.#waiting.take();
      if (read === undefined) {
        break;
      }
      reads.push(read);
    }
    return reads;
  }
}

const MAX_WRITES_IN_FLIGHT = 1_024;
const MAX_BYTES_IN_FLIGHT = 64 * 1024 * 1024;
/** A longer value would delay the commands behind it on the connection. */
const MAX_VALUE_BYTES = 8 * 1024 * 1024;

/** Writes entries. Nobody waits for the result. */
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

/** No other source can respond instead, so a script may take longer than a lookup. */
const SCRIPT_TIMEOUT_MS = 1_000;

const isUnknown = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

/** Runs scripts, each within a second; counts and logs their failures. */
export const createScripts = (client: Redis | Cluster, telemetry: Telemetry): RunScript => {
  const health = new RedisHealth("script", telemetry);
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
