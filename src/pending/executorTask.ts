import { setImmediate as nextTurn } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import { createEngines, type Engines } from "../evm/createEngines.ts";
import type { EngineKind } from "../evm/engineKind.ts";
import type { PlainCall } from "../state/fetch/prefetch.ts";
import { Channel } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import { FlashblockExecutor } from "./flashblockExecutor.ts";
import type { Execution, FlashblockJob } from "./flashblockJob.ts";
import { JobCancelledError } from "./jobState.ts";

const MAX_CODE_BYTES = 128 * 1024 * 1024;
/** Jobs of a sealed block end this long after it, because the next block waits for them. */
const MAX_AFTER_SEALED_MS = 2_000;

type Host = Channel<ExecutorHost, ExecutorFunctions>;
type Outcome = Execution | "cancelled";

const runJob = async (executor: FlashblockExecutor, { job, rules, isExecutable }: ExecutorRun): Promise<Outcome> => {
  try {
    return await executor.run(job, rules, isExecutable);
  } catch (error) {
    if (error instanceof JobCancelledError) {
      return "cancelled";
    }
    throw error;
  }
};

/** The executor's side in the worker thread. It takes jobs and changes of base in the order of their messages. */
class ExecutorServer {
  readonly #executor: FlashblockExecutor;
  /** Jobs up to this one start from a base that was replaced. They are not run. */
  #cancelledThrough = 0;
  #lastReceived = 0;
  /** Aborts the reads of jobs that are cancelled. */
  #reading = new AbortController();
  /** Jobs up to `through` belong to a sealed block, and some of them have not ended. */
  #sealed: { readonly through: number; readonly atMs: number } | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(host: Host, engine: Engines, { nativeContracts, maxSearchMs }: ExecutorData) {
    this.#executor = new FlashblockExecutor(
      {
        fetch: (base, keys, hint) => host.call("readState", { base, keys, hint }, { signal: this.#reading.signal }),
        engine,
        codes: new LRUCache<Hash, Uint8Array>({ maxSize: MAX_CODE_BYTES, sizeCalculation: (code) => code.length + 1 }),
        isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
        onRetry: ({ environment, index }, { message }) =>
          host.notify("retried", { number: environment.number, index, message }),
        isCancelled: ({ id }) => id <= this.#cancelledThrough,
        deadlineMs: ({ id }) => this.#deadlineMs(id),
        maxSearchMs,
      },
      { number: 0n, hash: ZERO_HASH },
    );
  }

  async execute(run: ExecutorRun): Promise<Outcome> {
    const { job, rules, isExecutable } = run;
    this.#lastReceived = job.id;
    if (isExecutable) {
      this.#executor.expect(job, rules);
    }
    return this.#enqueue(() => (job.id <= this.#cancelledThrough ? "cancelled" : runJob(this.#executor, run)));
  }

  rebase({ base, through }: Parameters<ExecutorFunctions["rebase"]>[0]): Promise<void> {
    if (through === undefined) {
      this.#cancelAll();
    }
    this.#sealed = through === undefined ? undefined : { through, atMs: this.#sealed?.atMs ?? performance.now() };
    return this.#enqueue(() => {
      if (through === this.#sealed?.through) {
        this.#sealed = undefined;
      }
      this.#executor.rebase(base, through);
    });
  }

  #deadlineMs(id: number): number | undefined {
    const sealed = this.#sealed;
    return sealed && id <= sealed.through ? sealed.atMs + MAX_AFTER_SEALED_MS : undefined;
  }

  /** Messages are received between two steps: execution by itself never waits. */
  #enqueue<T>(step: () => Promise<T> | T): Promise<T> {
    const result = this.#queue.then(() => nextTurn()).then(step);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** Jobs that were received until now are not run, and no longer wait for state. */
  #cancelAll(): void {
    this.#cancelledThrough = this.#lastReceived;
    this.#reading.abort(new Error("the base is another block now"));
    this.#reading = new AbortController();
  }
}

/** The task of a thread that executes flashblocks. Its data is ExecutorData. */
export const executorTask: ThreadTask = async (port, workerData) => {
  const data = workerData as ExecutorData;
  const engines = await createEngines(data.engine);
  const host: Host = new Channel(port, {
    execute: (run) => thread.execute(run),
    rebase: (change) => thread.rebase(change),
  });
  const thread = new ExecutorServer(host, engines, data);
};

interface ExecutorRun {
  readonly job: FlashblockJob;
  readonly rules: Rules;
  /** False: the block's own rules are not known, and the thread only decodes the transactions. */
  readonly isExecutable: boolean;
}

/** What the executor's thread offers. A job is "cancelled" if the state that it starts from is gone. */
export type ExecutorFunctions = {
  execute(run: ExecutorRun): Promise<Execution | "cancelled">;
  rebase(change: { readonly base: BlockId; readonly through: number | undefined }): void;
};

/** What the main thread offers to the executor's thread. */
export type ExecutorHost = {
  /** Reads state at a sealed block. `hint`: calls that will run soon. */
  readState(request: {
    readonly base: BlockId;
    readonly keys: StateKeys;
    readonly hint: readonly PlainCall[] | undefined;
  }): Promise<StateValues>;
  /** The state of a job could not be read. The read is retried. */
  retried(job: { readonly number: bigint; readonly index: number; readonly message: string }): void;
};

/** Sent to the thread when it starts. */
export interface ExecutorData {
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  readonly engine: EngineKind;
  /** As RoundLimits has it. */
  readonly maxSearchMs: number | undefined;
}
