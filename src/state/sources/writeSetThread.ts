import { WorkerPoolError } from "../../threads/poolLane.ts";
import { WorkerPool } from "../../threads/workerPool.ts";
import type { WorkerEntry } from "../../threads/workerThread.ts";
import type { WriteSetJob, WriteSetJobOutput } from "./writeSetJobs.ts";

export interface WriteSetThreadOptions {
  /** The entry of `writeSetTask`. */
  readonly entry: WorkerEntry;
  readonly onFailure: (error: Error) => void;
}

/** The limits of one job. */
export interface JobLimits {
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

const MAX_WAITING = 64;
const MAX_HEAP_MIB = 512;

/** A thread that turns responses of nodes into write sets, for all chains. It starts with the first read. */
export class WriteSetThread {
  readonly #pool: WorkerPool;

  constructor({ entry, onFailure }: WriteSetThreadOptions) {
    this.#pool = new WorkerPool({
      entry,
      size: 1,
      maxWaiting: MAX_WAITING,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
      onFailure,
    });
  }

  /** Starts the thread, so that it is there when a node has answered. */
  start(): void {
    this.#pool.start();
  }

  /** Never rejects. `deadlineMs` is on the clock of `performance`. */
  async run(job: WriteSetJob, limits: JobLimits): Promise<WriteSetJobOutput> {
    const { deadlineMs, signal } = limits;
    try {
      const output = await this.#pool.run({
        input: job,
        timeoutMs: Math.max(0, deadlineMs - performance.now()),
        signal,
      });
      return output as WriteSetJobOutput;
    } catch (error) {
      const hasFailed = error instanceof WorkerPoolError && error.reason === "failed";
      return { kind: "failed", reason: hasFailed ? "error" : "late" };
    }
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
