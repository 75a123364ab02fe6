import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { BlockId } from "../core/heads.ts";
import type { StateSource } from "../core/stateReader.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import type { PrefetchHint } from "../evm/prefetch.ts";
import { endWorker, loadedWorker } from "../workers/endWorker.ts";
import type { Execution, Executor, Work } from "./execution.ts";
import type { ExecutorData, FromExecutor, ToExecutor } from "./executorMessages.ts";

export interface ExecutorOptions {
  /** The rules as they are known now. */
  readonly forks: () => ChainForks;
  /** Addresses, or beginnings of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  /** State at a sealed block, asked from nodes. */
  readonly stateAt: (base: BlockId, wish?: PrefetchHint) => StateSource;
  /** The thread ended, or a run in it failed in a way that is a fault of ours. */
  readonly onFailure: (error: Error) => void;
  /** A message's state could not be read; it is tried again. */
  readonly onRetry?: (message: { readonly number: bigint; readonly index: number }, cause: string) => void;
}

const MAX_HEAP_MIB = 2_048;
/** A run leaves much that is young and dies soon. */
const YOUNG_HEAP_MIB = 128;
const READ_TIMEOUT_MS = 5_000;

interface Waiting {
  resolve(execution: Execution): void;
  reject(error: Error): void;
}

/** Executes in a thread of its own; what a run lacks is asked from nodes here. A thread that ends is replaced. */
export const createExecutor = (options: ExecutorOptions): Executor => {
  const { forks, nativeContracts, stateAt, onFailure, onRetry } = options;
  const waiting = new Map<number, Waiting>();
  const closing = new AbortController();
  let base: BlockId | undefined;
  let loaded = Promise.resolve();
  let worker = start();

  function start(): Worker {
    const data: ExecutorData = { nativeContracts };
    const started = new Worker(new URL(`executor.worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
    });
    loaded = loadedWorker(started);
    started.on("message", receive);
    started.on("error", (error) => replace(started, error));
    started.on("exit", () => replace(started, new Error("the executor's thread ended")));
    started.unref();
    return started;
  }

  function replace(lost: Worker, error: unknown): void {
    if (closing.signal.aborted || lost !== worker) return;
    onFailure(error instanceof Error ? error : new Error(String(error)));
    worker = start();
    if (base) post({ kind: "rebase", base, through: undefined });
    for (const { reject } of waiting.values()) reject(new Error("the executor's thread ended"));
    waiting.clear();
  }

  const post = (message: ToExecutor): void => worker.postMessage(message);

  const provide = async ({ id, base: at, keys, wish }: FromExecutor & { kind: "need" }): Promise<void> => {
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
      post({
        kind: "values",
        id,
        values: await stateAt(at, wish && { calls: wish, stateOverrides: undefined }).read(keys, signal),
      });
    } catch (error) {
      post({ kind: "noValues", id, message: error instanceof Error ? error.message : String(error) });
    }
  };

  function receive(message: FromExecutor): void {
    if (message.kind === "ready") return;
    if (message.kind === "need") {
      void provide(message);
      return;
    }
    if (message.kind === "retry") {
      onRetry?.(message, message.message);
      return;
    }
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "done") {
      asked?.resolve(message.execution);
    } else if (message.kind === "void") {
      asked?.reject(new Error("the base is another one"));
    } else {
      const error = new Error(message.message);
      onFailure(error);
      asked?.reject(error);
    }
  }

  return {
    execute: (work: Work) =>
      new Promise((resolve, reject) => {
        waiting.set(work.id, { resolve, reject });
        const { number, timestamp } = work.environment;
        const known = forks();
        const isExecutable = areRulesKnown(known, timestamp);
        post({ kind: "run", work, rules: newestRulesAt(known, number, timestamp), isExecutable });
      }),
    rebase: (next, through) => {
      base = next;
      post({ kind: "rebase", base: next, through });
    },
    close: async () => {
      closing.abort();
      await endWorker(worker, loaded);
    },
  };
};
