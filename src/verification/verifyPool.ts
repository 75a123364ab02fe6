import { movableBytes } from "../threads/movableBytes.ts";
import { type WorkerEntry, WorkerThread } from "../threads/workerThread.ts";
import type { ResponseChecks } from "./checkBody.ts";
import type { Finding } from "./findings.ts";
import type { FromVerifier, ToVerifier } from "./verifyMessages.ts";

/** A thread's findings, and the body. The body may be in other memory than before. */
export interface VerifiedBody {
  readonly findings: readonly Finding[];
  readonly body: Uint8Array;
}

/** Threads that verify responses. */
export interface VerifyPool {
  /** Rejects if the thread ends, or if the response is too large. */
  check(body: Uint8Array, checks: ResponseChecks): Promise<VerifiedBody>;
  close(): Promise<void>;
}

const MAX_THREADS = 2;
const MAX_HEAP_MIB = 512;
/** A larger response could not be parsed in that heap. */
const MAX_BYTES = 64 * 1024 * 1024;
interface PendingCheck {
  resolve(verified: VerifiedBody): void;
  reject(error: Error): void;
}

interface Thread {
  readonly worker: WorkerThread<ToVerifier, FromVerifier>;
  readonly waiting: Map<number, PendingCheck>;
}

/** Wraps the memory in a Buffer, which is searched natively. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Starts threads on first use. The next response replaces a thread that has ended. */
export class VerifyThreads implements VerifyPool {
  readonly #entry: WorkerEntry;
  readonly #threads = new Set<Thread>();
  #lastId = 0;
  #isClosed = false;

  constructor(entry: WorkerEntry) {
    this.#entry = entry;
  }

  check(body: Uint8Array, checks: ResponseChecks): Promise<VerifiedBody> {
    if (this.#isClosed) {
      return Promise.reject(new Error("shutting down"));
    }
    if (body.byteLength > MAX_BYTES && checks.kind !== "json") {
      return Promise.reject(new Error(`a response of ${body.byteLength} bytes is too large to be verified`));
    }
    const thread = this.#leastBusy();
    const id = ++this.#lastId;
    const moved = movableBytes(body);
    const message: ToVerifier = { id, body: moved, checks };
    return new Promise((resolve, reject) => {
      thread.waiting.set(id, { resolve, reject });
      thread.worker.post(message, [moved.buffer]);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#threads];
    for (const thread of threads) {
      this.#onThreadLost(thread, new Error("shutting down"));
    }
    await Promise.all(threads.map(({ worker }) => worker.end()));
  }

  #leastBusy(): Thread {
    const [first, ...others] = this.#threads;
    if (first === undefined) {
      return this.#start();
    }
    const best = others.reduce((least, each) => (each.waiting.size < least.waiting.size ? each : least), first);
    return best.waiting.size > 0 && this.#threads.size < MAX_THREADS ? this.#start() : best;
  }

  #start(): Thread {
    const thread: Thread = {
      worker: new WorkerThread<ToVerifier, FromVerifier>({
        entry: this.#entry,
        limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
        onMessage: (message) => this.#receive(thread, message),
        onLost: (error) => this.#onThreadLost(thread, error),
      }),
      waiting: new Map(),
    };
    this.#threads.add(thread);
    return thread;
  }

  #receive({ waiting }: Thread, message: FromVerifier): void {
    const request = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "done") {
      request?.resolve({ findings: message.findings, body: asBuffer(message.body) });
    } else {
      request?.reject(new Error(message.message));
    }
  }

  #onThreadLost(thread: Thread, error: Error): void {
    this.#threads.delete(thread);
    for (const { reject } of thread.waiting.values()) {
      reject(error);
    }
    thread.waiting.clear();
  }
}
