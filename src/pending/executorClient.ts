import type { BlockId } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { StateSource } from "../core/stateReader.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import type { EngineKind } from "../evm/engineKind.ts";
import type { SenderRecovery } from "../runs/senderRecovery.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import { type WorkerEntry, WorkerThread } from "../threads/workerThread.ts";
import type { ExecutorData, ExecutorFunctions, ExecutorHost } from "./executorTask.ts";
import type { Execution, Executor, FlashblockJob } from "./flashblockJob.ts";

export interface ExecutorOptions {
  readonly entry: WorkerEntry;
  /** Returns the rules as far as they are known now. */
  readonly forks: () => ChainForks;
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  /** Recovers senders beside the executing thread. */
  readonly senders?: Pick<SenderRecovery, "of" | "add">;
  readonly engine?: EngineKind;
  /** Time limit of one search for missing state. A test that counts round trips gives a large one. */
  readonly maxSearchMs?: number;
  /** Reads state at a sealed block from nodes. */
  readonly stateAt: (base: BlockId, hint?: PrefetchHint) => StateSource;
  /** Called when the thread ended by itself, or a job failed because of a fault of this program. */
  readonly onFailure: (error: Error) => void;
  /** Called when the state of a message could not be read. The read is retried. */
  readonly onRetry?: (message: { readonly number: bigint; readonly index: number }, cause: string) => void;
}

const MAX_HEAP_MIB = 2_048;
/** Execution allocates many objects with a short life. */
const YOUNG_HEAP_MIB = 128;
const READ_TIMEOUT_MS = 5_000;
const NO_LONGER_RUN = "the base is another block now";

type Thread = WorkerThread<ExecutorFunctions, ExecutorHost>;

/** Executes in a thread of its own, which requests missing state from this one. A thread that ends by itself is replaced. */
export class ExecutorClient implements Executor {
  readonly #options: ExecutorOptions;
  readonly #closing = new AbortController();
  #base: BlockId | undefined;
  #thread: Thread;
  /** Jobs and changes of base are sent in their order. A job waits for its senders. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#thread = this.#start();
  }

  async execute(job: FlashblockJob): Promise<Execution> {
    const { channel } = this.#thread;
    const { number, timestamp } = job.environment;
    const forks = this.#options.forks();
    const run = { rules: newestRulesAt(forks, number, timestamp), isExecutable: areRulesKnown(forks, timestamp) };
    const recovered = Promise.all([this.#options.senders?.of(job.transactions) ?? [], this.#turn]);
    this.#turn = recovered;
    const [senders] = await recovered;
    const execution = await channel.call("execute", { ...run, job: { ...job, senders } }).catch((error: unknown) => {
      this.#report(error, channel);
      throw error;
    });
    if (execution === "cancelled") {
      throw new Error(NO_LONGER_RUN);
    }
    this.#options.senders?.add(execution.transactions);
    return execution;
  }

  rebase(base: BlockId, through: number | undefined): void {
    const { channel } = this.#thread;
    this.#base = base;
    this.#turn = this.#turn.then(() => channel.notify("rebase", { base, through }));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#thread.end();
  }

  /** Reports the fault of a job. The end of a thread is reported once, when it is replaced. */
  #report(error: unknown, channel: Thread["channel"]): void {
    if (this.#thread.channel === channel && !this.#closing.signal.aborted) {
      this.#options.onFailure(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #start(): Thread {
    const { nativeContracts, engine = "fast", maxSearchMs, onRetry } = this.#options;
    const data: ExecutorData = { nativeContracts, engine, maxSearchMs };
    return new WorkerThread<ExecutorFunctions, ExecutorHost>({
      entry: this.#options.entry,
      data,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      functions: {
        readState: ({ base, keys, hint }) => {
          const signal = AbortSignal.any([this.#closing.signal, timeoutSignal(READ_TIMEOUT_MS)]);
          const source = this.#options.stateAt(base, hint && { calls: hint, stateOverrides: undefined });
          return source.read(keys, signal);
        },
        retried: (job) => onRetry?.(job, job.message),
      },
      onLost: (error) => this.#replace(error),
    });
  }

  /** Jobs for the thread that was lost are rejected. They are not sent to the new one. */
  #replace(error: Error): void {
    this.#options.onFailure(error);
    this.#thread = this.#start();
    this.#turn = Promise.resolve();
    if (this.#base) {
      this.rebase(this.#base, undefined);
    }
  }
}
