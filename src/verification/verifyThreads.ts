import { asBuffer } from "../json/jsonBytes.ts";
import type { Moved } from "../threads/channel.ts";
import { movableBytes } from "../threads/movableBytes.ts";
import { WorkerPool } from "../threads/workerPool.ts";
import type { WorkerEntry } from "../threads/workerThread.ts";
import type { ResponseChecks } from "./checkBody.ts";
import type { Finding } from "./findings.ts";

/** The input of a job. `body` is moved to the thread. */
export interface VerificationJob {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly checks: ResponseChecks;
}

/** A thread's findings, and the body. The body may be in other memory than before. */
export interface VerifiedBody {
  readonly findings: readonly Finding[];
  readonly body: Uint8Array;
}

/** The output of a job. */
export type VerificationOutput = Moved<VerifiedBody>;

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
  async check(body: Uint8Array, checks: ResponseChecks): Promise<VerifiedBody> {
    if (body.byteLength > MAX_BYTES && checks.kind !== "json") {
      throw new Error(`a response of ${body.byteLength} bytes is too large to be verified`);
    }
    const moved = movableBytes(body);
    const input: VerificationJob = { body: moved, checks };
    const verified = (await this.#pool.run({ input, transfer: [moved.buffer] })) as VerifiedBody;
    return { findings: verified.findings, body: asBuffer(verified.body) };
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}
