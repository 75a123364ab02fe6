import type { Cluster, Redis } from "ioredis";
import { FairQueue, INTERNAL_OWNER, type QueueOwner } from "../limits/fairQueue.ts";
import { FairShares } from "../limits/fairShares.ts";
import { failureReason, type RedisHealth } from "./redisHealth.ts";

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
