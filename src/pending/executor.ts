import type { BlockId } from "../core/heads.ts";
import type { StateSource } from "../core/stateReader.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import type { EngineKind } from "../evm/engineKind.ts";
import type { PrefetchHint } from "../evm/reads/prefetch.ts";
import type { SenderRecovery, Senders } from "../evm/senders/senderRecovery.ts";
import { OrderedPosts } from "../threads/orderedPosts.ts";
import { type WorkerEntry, WorkerThread } from "../threads/workerThread.ts";
import type { Execution, Executor, FlashblockJob } from "./execution.ts";
import type { ExecutorData, FromExecutor, ToExecutor } from "./executorMessages.ts";

export interface ExecutorOptions {
  readonly entry: WorkerEntry;
  /** Returns the rules as far as they are known now. */
  readonly forks: () => ChainForks;
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  /** Recovers senders beside the executing thread. */
  readonly senders?: Pick<SenderRecovery, "of" | "add">;
  readonly engine?: EngineKind;
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
const THREAD_ENDED = "the executor's thread ended";

type Waiting = Pick<PromiseWithResolvers<Execution>, "resolve" | "reject">;

/** Executes in a thread of its own, which requests missing state from this one. A thread that ends by itself is replaced. */
export const createExecutor = (options: ExecutorOptions): Executor => new ThreadExecutor(options);

class ThreadExecutor implements Executor {
  readonly #options: ExecutorOptions;
  readonly #waiting = new Map<number, Waiting>();
  readonly #closing = new AbortController();
  #base: BlockId | undefined;
  #thread: WorkerThread<ToExecutor, FromExecutor>;
  /** The jobs and changes of base for the thread. */
  #posts: OrderedPosts<ToExecutor>;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#thread = this.#start();
    this.#posts = this.#startPosts();
  }

  execute(job: FlashblockJob): Promise<Execution> {
    return this.#run("run", job);
  }

  executeRest(job: FlashblockJob): Promise<Execution> {
    return this.#run("runRest", job);
  }

  #run(kind: "run" | "runRest", job: FlashblockJob): Promise<Execution> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.id, { resolve, reject });
      const { number, timestamp } = job.environment;
      const forks = this.#options.forks();
      const isExecutable = areRulesKnown(forks, timestamp);
      const run = { kind, rules: newestRulesAt(forks, number, timestamp), isExecutable };
      const senders = this.#options.senders?.of(job.transactions) ?? [];
      const withSenders = (known: Senders): ToExecutor => ({ ...run, job: { ...job, senders: known } });
      this.#posts.post(senders instanceof Promise ? senders.then(withSenders) : withSenders(senders));
    });
  }

  rebase(base: BlockId, through: number | undefined): void {
    this.#base = base;
    this.#posts.post({ kind: "rebase", base, through });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#thread.end();
  }

  #start(): WorkerThread<ToExecutor, FromExecutor> {
    const { nativeContracts, engine = "auto" } = this.#options;
    const data: ExecutorData = { nativeContracts, engine };
    return new WorkerThread<ToExecutor, FromExecutor>({
      entry: this.#options.entry,
      data,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      onMessage: (message) => this.#receive(message),
      onLost: (error) => this.#replace(error),
    });
  }

  /** Messages that were posted for a thread before are not sent to this one. */
  #startPosts(): OrderedPosts<ToExecutor> {
    const thread = this.#thread;
    return new OrderedPosts((message) => thread.post(message));
  }

  #replace(error: Error): void {
    this.#options.onFailure(error);
    this.#thread = this.#start();
    this.#posts = this.#startPosts();
    if (this.#base) {
      this.#posts.post({ kind: "rebase", base: this.#base, through: undefined });
    }
    for (const { reject } of this.#waiting.values()) {
      reject(new Error(THREAD_ENDED));
    }
    this.#waiting.clear();
  }

  #receive(message: FromExecutor): void {
    if (message.kind === "readState") {
      void this.#sendState(message);
    } else if (message.kind === "retry") {
      this.#options.onRetry?.(message, message.message);
    } else {
      this.#complete(message);
    }
  }

  #complete(message: FromExecutor & { kind: "done" | "cancelled" | "failed" }): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === "done") {
      this.#options.senders?.add(message.execution.transactions);
      waiting?.resolve(message.execution);
    } else if (message.kind === "cancelled") {
      waiting?.reject(new Error(NO_LONGER_RUN));
    } else {
      const error = new Error(message.message);
      this.#options.onFailure(error);
      waiting?.reject(error);
    }
  }

  async #sendState({ id, base, keys, hint }: FromExecutor & { kind: "readState" }): Promise<void> {
    try {
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
      const source = this.#options.stateAt(base, hint && { calls: hint, stateOverrides: undefined });
      this.#thread.post({ kind: "values", id, values: await source.read(keys, signal) });
    } catch (error) {
      this.#thread.post({ kind: "noValues", id, message: error instanceof Error ? error.message : String(error) });
    }
  }
}
