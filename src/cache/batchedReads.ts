import { asBuffer } from "../json/jsonBytes.ts";
import { FairQueue, INTERNAL_OWNER, type QueueOwner } from "../limits/fairQueue.ts";
import { FairShares } from "../limits/fairShares.ts";
import type { CacheEntry } from "./cacheEntry.ts";
import { decodeValue } from "./redisValue.ts";

/** The keys of one command. */
const MAX_KEYS_PER_COMMAND = 128;
/** Reads without a response, even if their deadline is over. One client may have half of them. */
const MAX_READS_IN_FLIGHT = 8_192;

/** A stored value. Redis returns null for a key without one. */
type Value = Uint8Array | null | undefined;

/** Some of the keys of a batch, in their order, and their values. */
export interface ReadCommand {
  readonly keys: number;
  readonly values: Promise<readonly Value[]>;
}

/** A store that reads many keys at once. */
export interface BatchSource {
  /** Sends the commands that read these keys. */
  send(keys: readonly string[]): readonly ReadCommand[];
  /** Deadline of each read. */
  readonly timeoutMs: number;
  /** Called with the number of reads that had no response at their deadline. */
  onTimeout(reads: number): void;
  /** `startMs`: when the command was sent. */
  onSuccess(startMs: number): void;
  onError(error: unknown, reads: number): void;
}

interface Read {
  readonly key: string;
  readonly clientId: string;
  readonly finish: (value: Buffer | undefined) => void;
}

/** Reads sent at the same time. They have one deadline. */
class ReadBatch {
  readonly #reads: readonly Read[];
  readonly #source: BatchSource;
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #unfinished: number;

  constructor(reads: readonly Read[], source: BatchSource) {
    this.#reads = reads;
    this.#source = source;
    this.#unfinished = reads.length;
    this.#timer = setTimeout(() => this.#onTimeout(), source.timeoutMs);
  }

  /** Sends the commands. Calls `onDone` with the reads of each, when its response arrives or it fails. */
  send(onDone: (reads: readonly Read[]) => void): void {
    let first = 0;
    for (const { keys, values } of this.#source.send(this.#reads.map(({ key }) => key))) {
      const reads = this.#reads.slice(first, first + keys);
      first += keys;
      values.then(
        (list) => {
          onDone(reads);
          this.#onValues(reads, list);
        },
        (error: unknown) => {
          onDone(reads);
          this.#onError(reads, error);
        },
      );
    }
  }

  #onTimeout(): void {
    this.#source.onTimeout(this.#unfinished);
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

  #onValues(reads: readonly Read[], values: readonly Value[]): void {
    if (!this.#countFinished(reads)) {
      return;
    }
    this.#source.onSuccess(this.#startMs);
    reads.forEach(({ finish }, index) => {
      const value = values[index];
      // A broken reply can have elements of other types.
      finish(value instanceof Uint8Array ? asBuffer(value) : undefined);
    });
  }

  #onError(reads: readonly Read[], error: unknown): void {
    if (!this.#countFinished(reads)) {
      return;
    }
    this.#source.onError(error, reads.length);
    for (const { finish } of reads) {
      finish(undefined);
    }
  }
}

/**
 * Reads entries of a store. The reads of one turn of the event loop are one command. Those of several commands are sent in turns of
 * the clients. Concurrent reads of a key share one.
 */
export class BatchedReads {
  readonly #source: BatchSource;
  /** Called if a value is not a valid entry. */
  readonly #onCorrupt: () => void;
  readonly #waiting = new FairQueue<Read>();
  readonly #places = new FairShares(MAX_READS_IN_FLIGHT);
  readonly #pending = new Map<string, Promise<CacheEntry | undefined>>();

  constructor(source: BatchSource, onCorrupt: () => void) {
    this.#source = source;
    this.#onCorrupt = onCorrupt;
  }

  /** Whether this client has too many reads in flight, or all clients together have. */
  isFull({ clientId }: QueueOwner = INTERNAL_OWNER): boolean {
    return !this.#places.fits(clientId, 1);
  }

  /** Returns the read of a key that is in flight. */
  pending(key: string): Promise<CacheEntry | undefined> | undefined {
    return this.#pending.get(key);
  }

  /** Reads an entry. Returns undefined if there is none, if the store fails, or at the deadline. Never rejects. */
  read(key: string, owner?: QueueOwner): Promise<CacheEntry | undefined> {
    const entry = this.#readEntry(key, owner).finally(() => this.#pending.delete(key));
    this.#pending.set(key, entry);
    return entry;
  }

  async #readEntry(key: string, owner: QueueOwner | undefined): Promise<CacheEntry | undefined> {
    const value = await this.#readValue(key, owner);
    if (value === undefined) {
      return undefined;
    }
    const entry = await decodeValue(key, value).catch(() => undefined);
    if (entry === undefined) {
      this.#onCorrupt();
    }
    return entry;
  }

  #readValue(key: string, owner: QueueOwner = INTERNAL_OWNER): Promise<Buffer | undefined> {
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
      const batch = new ReadBatch(this.#takeReads(), this.#source);
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
