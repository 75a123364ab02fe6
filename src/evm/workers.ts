import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { StateSource } from "../core/stateReader.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { endWorker, loadedWorker } from "../workers/endWorker.ts";
import type { FromWorker, ToWorker } from "./runMessages.ts";

const MAX_WAITING = 64;
/** A thread that ended before it was ready would most likely do so again at once. */
const RESTART_MS = 1_000;
const MAX_HEAP_MIB = 512;

/** A run cannot be done here, because code on that chain is not in the EVM: a node must answer. */
export class MustForwardError extends Error {
  override readonly name = "NotRunHere";
}

export interface WorkersOptions {
  /** A worker file, made by `workerFile`. */
  readonly entry: URL;
  /** Threads at most. A thread starts when a run waits and no other thread is free. */
  readonly size: number;
  readonly maxWaiting?: number;
  /** Called with the number of threads when it changes. */
  readonly onThreads?: (threads: number) => void;
  /** Called when a run or a worker ended in a way that is a fault of ours. */
  readonly onFailure?: (error: Error) => void;
  /** Called when a run was ended by its deadline. */
  readonly onDeadline?: () => void;
}

export interface RunRequest {
  readonly name: string;
  /** Plain data; `transfer` lists buffers that move instead of being copied. */
  readonly input: unknown;
  readonly source: StateSource;
  /** Addresses, or beginnings of addresses, whose code is native in that block: a run that touches one is not run here. */
  readonly nativeContracts: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface RunOutcome {
  readonly output: unknown;
  readonly rounds: number;
}

/** A pool of threads that execute, started on first use. They have no network: what a run lacks is asked from its StateSource, here. */
export interface Workers {
  /** Rejects with RpcError (503 where too many wait, the deadline, a run's own error), or with NotRunHere. */
  run(request: RunRequest): Promise<RunOutcome>;
  readonly busy: number;
  readonly waiting: number;
  close(): Promise<void>;
}

interface Job extends RunRequest {
  readonly resolve: (outcome: RunOutcome) => void;
  readonly reject: (error: unknown) => void;
  /** The turn has come, or will not come any more. */
  endWaiting(): void;
}

interface WorkerSlot {
  worker: Worker | undefined;
  loaded: Promise<void>;
  isReady: boolean;
  /** Its last thread ended early: the next one starts later. */
  isResting: boolean;
  job: Job | undefined;
  id: number;
  endJob: (() => void) | undefined;
  /** Of its last run. */
  stateId: string | undefined;
}

const createSeat = (): WorkerSlot => ({
  worker: undefined,
  loaded: Promise.resolve(),
  isReady: false,
  isResting: false,
  job: undefined,
  id: 0,
  endJob: undefined,
  stateId: undefined,
});

/** A worker file beside `here`, with the ending that `here` has itself: .ts as written, .js as built. */
export const workerFile = (here: string, name: string): URL => new URL(`${name}.worker${extname(here)}`, here);

export const createWorkers = (options: WorkersOptions): Workers => {
  const { entry, size, maxWaiting = MAX_WAITING, onFailure, onDeadline, onThreads } = options;
  const queue: Job[] = [];
  const seats = Array.from({ length: size }, createSeat);
  let isClosed = false;
  let lastId = 0;

  const post = (seat: WorkerSlot, message: ToWorker) => seat.worker?.postMessage(message);

  const countThreads = (): void => onThreads?.(seats.filter(({ worker }) => worker !== undefined).length);

  const start = (seat: WorkerSlot): void => {
    const worker = new Worker(entry, {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    });
    seat.worker = worker;
    seat.loaded = loadedWorker(worker);
    seat.isReady = false;
    seat.stateId = undefined;
    worker.on("message", (message: FromWorker) => receive(seat, message));
    worker.on("error", (error) => lose(seat, worker, error));
    worker.on("exit", () => lose(seat, worker, new Error("a worker ended")));
    worker.unref();
    countThreads();
  };

  /** One thread for each waiting run that no starting thread can take, as long as there are seats. */
  const startMissing = (): void => {
    const starting = seats.filter(({ worker, isReady }) => worker !== undefined && !isReady);
    const empty = seats.filter(({ worker, isResting }) => worker === undefined && !isResting);
    for (const seat of empty.slice(0, Math.max(0, queue.length - starting.length))) start(seat);
  };

  /** A thread that is gone is replaced; its run is answered. */
  const lose = (seat: WorkerSlot, worker: Worker, error: unknown): void => {
    if (isClosed || seat.worker !== worker) return;
    const cause = error instanceof Error ? error : new Error(String(error));
    onFailure?.(cause);
    finish(seat, (job) => job.reject(new RpcError(CODES.INTERNAL, "execution failed", { cause })));
    if (seat.isReady) {
      replace(seat);
      return;
    }
    seat.worker = undefined;
    seat.isResting = true;
    countThreads();
    setTimeout(() => {
      seat.isResting = false;
      if (!isClosed) next();
    }, RESTART_MS).unref();
  };

  const replace = (seat: WorkerSlot): void => {
    const old = seat.worker;
    if (!isClosed) start(seat);
    void old?.terminate();
  };

  const finish = (seat: WorkerSlot, answer: (job: Job) => void): void => {
    const { job } = seat;
    seat.endJob?.();
    seat.job = undefined;
    seat.endJob = undefined;
    if (job !== undefined) answer(job);
  };

  const receive = (seat: WorkerSlot, message: FromWorker): void => {
    if (message.kind === "ready") {
      seat.isReady = true;
      next();
      return;
    }
    if (message.id !== seat.id || seat.job === undefined) return;
    if (message.kind === "need") {
      provide(seat, seat.job, message);
      return;
    }
    finish(seat, (job) => settleJob(job, message, onFailure));
    next();
  };

  const provide = (seat: WorkerSlot, job: Job, { id, keys }: FromWorker & { kind: "need" }): void => {
    const isStill = () => seat.id === id && seat.job === job;
    job.source.read(keys, job.signal).then(
      (values) => {
        if (isStill()) post(seat, { kind: "values", id, values });
      },
      (error: unknown) => {
        if (!isStill()) return;
        // The thread forgets the run; the caller hears what the node said.
        post(seat, { kind: "noValues", id, message: "state could not be read" });
        finish(seat, () => job.reject(error));
        next();
      },
    );
  };

  const assign = (seat: WorkerSlot, job: Job): void => {
    seat.id = ++lastId;
    seat.job = job;
    seat.stateId = job.source.id;
    const stop = (error: unknown) => {
      finish(seat, () => job.reject(error));
      replace(seat);
      next();
    };
    const timer = setTimeout(() => {
      onDeadline?.();
      stop(deadlineError(job.timeoutMs));
    }, job.timeoutMs);
    const leave = () => stop(job.signal.reason);
    job.signal.addEventListener("abort", leave, { once: true });
    seat.endJob = () => {
      clearTimeout(timer);
      job.signal.removeEventListener("abort", leave);
    };
    const { name, source, nativeContracts, input } = job;
    post(seat, { kind: "run", id: seat.id, name, stateId: source.id, nativeContracts, input });
  };

  const busy = (): number => seats.filter(({ job }) => job !== undefined).length;

  const next = (): void => {
    for (;;) {
      const idle = seats.filter(({ isReady, job }) => isReady && job === undefined);
      const [first] = idle;
      const job = first && queue.shift();
      if (first === undefined || job === undefined) break;
      job.endWaiting();
      // A thread that ran on this state already knows part of it.
      assign(idle.find(({ stateId }) => stateId === job.source.id) ?? first, job);
    }
    startMissing();
  };

  /** Nobody waits longer for a turn than a run may take, nor for a caller who has left. */
  const wait = (request: RunRequest, { resolve, reject }: Pick<Job, "resolve" | "reject">): void => {
    const { signal, timeoutMs } = request;
    const giveUp = (error: unknown): void => {
      job.endWaiting();
      queue.splice(queue.indexOf(job), 1);
      reject(error);
    };
    const leave = () => giveUp(signal.reason);
    const timer = setTimeout(() => giveUp(unavailable("too many simulations are running")), timeoutMs);
    signal.addEventListener("abort", leave, { once: true });
    const job: Job = {
      ...request,
      resolve,
      reject,
      endWaiting: () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
      },
    };
    queue.push(job);
  };

  return {
    run: (request) =>
      new Promise((resolve, reject) => {
        if (isClosed) throw unavailable("shutting down");
        if (queue.length >= maxWaiting) throw unavailable("too many simulations are waiting");
        request.signal.throwIfAborted();
        wait(request, { resolve, reject });
        next();
      }),
    get busy() {
      return busy();
    },
    get waiting() {
      return queue.length;
    },
    close: async () => {
      isClosed = true;
      for (const job of queue.splice(0)) {
        job.endWaiting();
        job.reject(unavailable("shutting down"));
      }
      for (const seat of seats) finish(seat, (job) => job.reject(unavailable("shutting down")));
      await Promise.all(seats.map(({ worker, loaded }) => worker && endWorker(worker, loaded)));
    },
  };
};

const deadlineError = (timeoutMs: number): RpcError =>
  new RpcError(CODES.INTERNAL, `execution aborted (timeout = ${timeoutMs / 1000}s)`);

const settleJob = (
  job: Job,
  message: Exclude<FromWorker, { kind: "ready" | "need" }>,
  onFailure: ((error: Error) => void) | undefined,
): void => {
  if (message.kind === "done") {
    job.resolve({ output: message.output, rounds: message.rounds });
  } else if (message.kind === "fault") {
    const { code, message: text, data } = message.fault;
    job.reject(new RpcError(code, text, data === undefined ? {} : { data }));
  } else if (message.kind === "native") {
    job.reject(new MustForwardError(message.message));
  } else {
    const cause = new Error(message.message);
    onFailure?.(cause);
    job.reject(new RpcError(CODES.INTERNAL, "execution failed", { cause }));
  }
};
