import type { ResourceLimits } from "node:worker_threads";
import { createInterrupts, type FromJobThread, type ToJobThread } from "./jobMessages.ts";
import { type QueuedJob, watchJob } from "./jobQueue.ts";
import { WorkerPoolError } from "./workerPoolError.ts";
import { type WorkerEntry, WorkerThread } from "./workerThread.ts";

/** A thread that ends before it is loaded would probably do so again. The next one starts after this pause. */
const RESTART_MS = 1_000;
/** A thread that did not end an interrupted job within this time is replaced. */
const INTERRUPT_MS = 500;

export interface WorkerSlotOptions {
  readonly entry: WorkerEntry;
  /** Plain data for the task. */
  readonly data: unknown;
  readonly limits: ResourceLimits;
  /** The slot can take a job, or can start a thread. */
  readonly onFree: () => void;
  /** The slot has or lost its thread. */
  readonly onThread: () => void;
  /** A thread ended by itself, or a job threw. */
  readonly onFailure: (error: Error) => void;
  readonly onDeadline: () => void;
}

interface RunningJob {
  readonly id: number;
  readonly job: QueuedJob;
  readonly endWatch: () => void;
}

/** A job that was interrupted, and that the thread has not ended yet. */
interface EndingJob {
  readonly id: number;
  readonly timer: NodeJS.Timeout;
}

/** The place of one thread in a pool, with the job that runs on it. A thread that is lost or ended is replaced. */
export class WorkerSlot {
  readonly #options: WorkerSlotOptions;
  #thread: WorkerThread<ToJobThread, FromJobThread> | undefined;
  #isLoaded = false;
  #isPausing = false;
  #isClosed = false;
  #running: RunningJob | undefined;
  #ending: EndingJob | undefined;
  readonly #interrupts = createInterrupts();
  #lastId = 0;
  #affinity: string | undefined;

  constructor(options: WorkerSlotOptions) {
    this.#options = options;
  }

  get hasThread(): boolean {
    return this.#thread !== undefined;
  }

  /** No thread runs here, and one may start now. */
  get isEmpty(): boolean {
    return this.#thread === undefined && !this.#isPausing;
  }

  get isStarting(): boolean {
    return this.#thread !== undefined && !this.#isLoaded;
  }

  get isIdle(): boolean {
    return this.#isLoaded && this.#running === undefined && this.#ending === undefined;
  }

  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Of the thread's last job. */
  get affinity(): string | undefined {
    return this.#affinity;
  }

  start(): void {
    const { entry, data, limits, onFree, onThread } = this.#options;
    this.#isLoaded = false;
    this.#affinity = undefined;
    this.#thread = new WorkerThread<ToJobThread, FromJobThread>({
      entry,
      data,
      limits,
      onLoaded: () => {
        this.#isLoaded = true;
        onFree();
      },
      onMessage: (message) => this.#receive(message),
      onLost: (error) => this.#lose(error),
    });
    onThread();
  }

  run(job: QueuedJob): void {
    const id = ++this.#lastId;
    const endWatch = watchJob(
      job,
      () => {
        this.#options.onDeadline();
        this.#interrupt(id, new WorkerPoolError("deadline"));
      },
      (reason) => this.#interrupt(id, reason),
    );
    this.#running = { id, job, endWatch };
    this.#affinity = job.affinity ?? this.#affinity;
    this.#thread?.post({ kind: "run", id, input: job.input, interrupts: this.#interrupts }, job.transfer);
  }

  async close(error: Error): Promise<void> {
    this.#isClosed = true;
    this.#finish()?.reject(error);
    this.#endInterrupt();
    await this.#thread?.end();
  }

  #receive(message: FromJobThread): void {
    if (message.id === this.#ending?.id) {
      this.#receiveEnding(message);
      return;
    }
    const running = this.#running;
    if (running === undefined || message.id !== running.id) {
      return;
    }
    if (message.kind === "request") {
      void this.#respond(running, message.request);
      return;
    }
    this.#finish();
    if (message.kind === "done") {
      running.job.resolve(message.output);
    } else {
      this.#fail(running.job, new Error(message.message));
    }
    this.#options.onFree();
  }

  async #respond(running: RunningJob, request: unknown): Promise<void> {
    const { id, job } = running;
    try {
      const value = await job.onRequest(request);
      if (this.#running === running) {
        this.#thread?.post({ kind: "reply", id, value });
      }
    } catch (error) {
      if (this.#running !== running) {
        return;
      }
      // The thread ends the job. The caller gets the error itself.
      this.#thread?.post({ kind: "noReply", id });
      this.#finish()?.reject(error);
      this.#options.onFree();
    }
  }

  /** Ends a job early. Its caller gets the error at once. The thread takes the next job when it has ended this one. */
  #interrupt(id: number, error: unknown): void {
    this.#finish()?.reject(error);
    Atomics.store(this.#interrupts, 0, id);
    // The job may wait for a value.
    this.#thread?.post({ kind: "noReply", id });
    this.#ending = { id, timer: setTimeout(() => this.#replaceThread(), INTERRUPT_MS) };
  }

  #receiveEnding({ kind, id }: FromJobThread): void {
    if (kind === "request") {
      this.#thread?.post({ kind: "noReply", id });
      return;
    }
    this.#endInterrupt();
    this.#options.onFree();
  }

  #endInterrupt(): void {
    clearTimeout(this.#ending?.timer);
    this.#ending = undefined;
  }

  /** Ends a job that does not heed an interrupt, and with it the thread. */
  #replaceThread(): void {
    this.#endInterrupt();
    void this.#thread?.end();
    this.start();
    this.#options.onFree();
  }

  #lose(error: Error): void {
    this.#endInterrupt();
    const job = this.#finish();
    if (job === undefined) {
      this.#options.onFailure(error);
    } else {
      this.#fail(job, error);
    }
    if (this.#isLoaded) {
      this.start();
      return;
    }
    this.#thread = undefined;
    this.#isPausing = true;
    this.#options.onThread();
    setTimeout(() => {
      this.#isPausing = false;
      if (!this.#isClosed) {
        this.#options.onFree();
      }
    }, RESTART_MS).unref();
  }

  #fail(job: QueuedJob, cause: Error): void {
    this.#options.onFailure(cause);
    job.reject(new WorkerPoolError("failed", { cause }));
  }

  #finish(): QueuedJob | undefined {
    const running = this.#running;
    running?.endWatch();
    this.#running = undefined;
    return running?.job;
  }
}
