import type { ResourceLimits } from "node:worker_threads";
import { MustForwardError } from "../core/mustForwardError.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { RemoteCall } from "./channel.ts";
import { copyInput } from "./copyBytes.ts";
import { type QueuedJob, WorkerPoolError, watchJob } from "./poolLane.ts";
import { type WorkerEntry, WorkerThread } from "./workerThread.ts";

/** A thread that ends before it is loaded would probably do so again. The next one starts after this pause. */
const RESTART_MS = 1_000;
/** A thread that did not end an interrupted job within this time is replaced. */
const INTERRUPT_MS = 500;

/** What the task of a pool's thread offers. */
export type JobFunctions = {
  /** Runs one job. A long run must end soon after `call.isAborted` returns true: nobody waits for its output. */
  run(input: unknown, call: RemoteCall): unknown;
};

type JobThread = WorkerThread<JobFunctions, Record<string, never>>;

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
}

/** The place of one thread in a pool, with the job that runs on it. A thread that is lost or ended is replaced. */
export class WorkerSlot {
  readonly #options: WorkerSlotOptions;
  #thread: JobThread | undefined;
  #isLoaded = false;
  #isPausing = false;
  /** The caller of "ending" has its error, and the thread has not ended the job yet. */
  #job: "none" | "running" | "ending" = "none";
  /** Of the job. */
  #ending: AbortController | undefined;
  #isClosed = false;
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
    return this.#isLoaded && this.#job === "none";
  }

  /** Of the thread's last job. */
  get affinity(): string | undefined {
    return this.#affinity;
  }

  start(): void {
    const { entry, data, limits, onFree, onThread } = this.#options;
    this.#isLoaded = false;
    this.#affinity = undefined;
    this.#thread = new WorkerThread({
      entry,
      data,
      limits,
      functions: {},
      onLoaded: () => {
        this.#isLoaded = true;
        onFree();
      },
      onLost: (error) => this.#lose(error),
    });
    onThread();
  }

  /** Runs a job. The slot must be idle. */
  run(job: QueuedJob): void {
    if (this.#thread !== undefined) {
      this.#job = "running";
      this.#affinity = job.affinity ?? this.#affinity;
      void this.#run(job, this.#thread);
    }
  }

  async close(error: Error): Promise<void> {
    this.#isClosed = true;
    this.#ending?.abort(error);
    await this.#thread?.end();
    this.#thread = undefined;
    this.#options.onThread();
  }

  async #run(job: QueuedJob, thread: JobThread): Promise<void> {
    const { onRequest } = job;
    const ending = new AbortController();
    this.#ending = ending;
    const endWatch = watchJob(
      job,
      () => ending.abort(new WorkerPoolError("deadline")),
      (reason) => ending.abort(reason),
    );
    const ended = Promise.withResolvers<void>();
    let hasEnded = false;
    const onEnd = (): void => {
      hasEnded = true;
      ended.resolve();
    };
    try {
      const { input, copies } = await copyInput(job.input).catch((error: unknown) => {
        // There is no memory for the copies: the thread gets nothing that it could end.
        onEnd();
        throw error;
      });
      const options = { signal: ending.signal, moved: copies, onAsk: onRequest, onEnd };
      job.resolve(await thread.channel.call("run", input, options));
    } catch (error) {
      job.reject(hasEnded && !ending.signal.aborted ? this.#outcomeOf(error) : error);
    }
    endWatch();
    if (!hasEnded) {
      await this.#untilEnded(ended.promise);
    }
    this.#job = "none";
    this.#options.onFree();
  }

  /** The caller of a job has its error at once. The thread takes the next job when it has ended this one. */
  async #untilEnded(ended: Promise<void>): Promise<void> {
    this.#job = "ending";
    const timer = setTimeout(() => {
      // The job ignores the interrupt. Its call ends with its thread.
      void this.#thread?.end();
      this.start();
    }, INTERRUPT_MS);
    await ended;
    clearTimeout(timer);
  }

  /** A job may end with an error for its caller. Any other error is a fault of the job. */
  #outcomeOf(error: unknown): unknown {
    if (error instanceof RpcError || error instanceof MustForwardError) {
      return error;
    }
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#options.onFailure(cause);
    return new WorkerPoolError("failed", { cause });
  }

  #lose(error: Error): void {
    if (this.#job !== "running") {
      this.#options.onFailure(error);
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
}
