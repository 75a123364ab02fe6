import type { CacheEntry } from "../cache/cacheEntry.ts";
import type { MemoryStore } from "../cache/memoryStore.ts";
import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { overBudget, unavailable } from "../jsonrpc/rpcError.ts";
import { ownerOf, type QueueOwner } from "../limits/fairQueue.ts";
import { SharedTask } from "../limits/sharedTask.ts";
import { WorkerPoolError } from "../threads/poolLane.ts";
import { WorkerPool } from "../threads/workerPool.ts";
import type { WorkerEntry } from "../threads/workerThread.ts";
import { JsonItems } from "./jsonItems.ts";
import type { PartJob, ProvenPart } from "./provenParts.ts";

export interface ProvenBlocksOptions {
  /** The entry of `provenTask`. */
  readonly entry: WorkerEntry;
  readonly store: Pick<MemoryStore, "get" | "set">;
  readonly onFailure: (error: Error) => void;
}

/** One thread bounds the CPU that proofs take from other work. */
const THREADS = 1;
const MAX_HEAP_MIB = 512;
const MAX_WAITING = 1_024;
/** The limits of a job in the queue, and in the thread. */
const MAX_WAIT_MS = 10_000;
const MAX_RUN_MS = 10_000;

const keyOf = (hash: BlockId["hash"], part: ProvenPart): string => `proven:${part}:${hash}`;

/** Formats proven parts of blocks in a thread, once, and keeps their bytes in the cache by the hash of the block. For all chains. */
export class ProvenBlocks {
  readonly #store: ProvenBlocksOptions["store"];
  readonly #pool: WorkerPool;
  readonly #running = new Map<string, SharedTask<JsonItems | undefined>>();

  constructor({ entry, store, onFailure }: ProvenBlocksOptions) {
    this.#store = store;
    this.#pool = new WorkerPool({
      ...{ entry, onFailure, size: THREADS, maxWaiting: MAX_WAITING },
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
  }

  find(hash: BlockId["hash"], part: ProvenPart): JsonItems | undefined {
    const cached = this.#store.get(keyOf(hash, part));
    return cached && new JsonItems(cached.body);
  }

  /**
   * Formats a part, once for simultaneous requests. Returns undefined if the responses do not have it. Rejects with RpcError (503)
   * without room in the memory budget, or if too many parts wait.
   */
  async format(job: PartJob, context: Context): Promise<JsonItems | undefined> {
    const key = keyOf(job.block.hash, job.part);
    // The responses may leave the cache while they wait.
    const drop = holdResponses(job, context);
    try {
      const running = this.#running.get(key);
      if (running !== undefined) {
        return await running.join(context);
      }
      const task = new SharedTask<JsonItems | undefined>(context, key, this.#running);
      return await task.start(this.#run(job, ownerOf(context.caller), task.ending.signal));
    } finally {
      drop();
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  async #run(job: PartJob, owner: QueueOwner, signal: AbortSignal): Promise<JsonItems | undefined> {
    const { block, part } = job;
    try {
      const limits = { timeoutMs: MAX_RUN_MS, maxWaitMs: MAX_WAIT_MS, owner, signal };
      const body = (await this.#pool.run({ input: job, ...limits })) as Uint8Array | undefined;
      if (body === undefined) {
        return undefined;
      }
      const entry: CacheEntry = { body, block, isFinal: false, storedAtMs: Date.now(), grade: "proven" };
      this.#store.set(keyOf(block.hash, part), entry);
      return new JsonItems(body);
    } catch (error) {
      throw error instanceof WorkerPoolError ? unavailable("too many proofs are waiting") : error;
    }
  }
}

/** Counts the responses that a job needs. Returns the function that ends that. Throws RpcError (503) without room. */
const holdResponses = ({ body, receipts }: PartJob, { memory }: Context): (() => void) => {
  const held: Uint8Array[] = [];
  const drop = (): void => {
    for (const each of held) {
      memory?.drop(each);
    }
  };
  for (const each of receipts === undefined ? [body] : [body, receipts]) {
    if (memory?.hold(each) === false) {
      drop();
      throw overBudget();
    }
    held.push(each);
  }
  return drop;
};
