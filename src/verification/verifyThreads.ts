import { WorkerPool } from "../threads/workerPool.ts";
import type { WorkerEntry } from "../threads/workerThread.ts";
import type { ResponseChecks } from "./checkBody.ts";
import type { Finding } from "./findings.ts";

/** The input of a job. The thread has a copy of `body`. */
export interface VerificationJob {
  readonly body: Uint8Array;
  readonly checks: ResponseChecks;
}

const MAX_THREADS = 2;
const MAX_HEAP_MIB = 512;
/** A larger response could not be parsed in that heap. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Threads that verify responses. They start on first use. */
export class VerifyThreads {
  readonly #pool: WorkerPool;

  constructor(entry: WorkerEntry) {
    this.#pool = new WorkerPool({
      entry,
      size: MAX_THREADS,
      maxWaiting: Number.POSITIVE_INFINITY,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
  }

  /** Rejects if the thread ends, or if the response is too large. */
  async check(body: Uint8Array, checks: ResponseChecks): Promise<readonly Finding[]> {
    if (body.byteLength > MAX_BYTES && checks.kind !== "json") {
      throw new Error(`a response of ${body.byteLength} bytes is too large to be verified`);
    }
    const input: VerificationJob = { body, checks };
    return (await this.#pool.run({ input })) as readonly Finding[];
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
