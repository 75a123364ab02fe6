import { setTimeout as wait } from "node:timers/promises";
import type { BlockId } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { StateSource } from "../core/stateReader.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import type { EvmWorkers } from "../runs/evmWorkers.ts";
import type { Execution, Executor, FlashblockJob, MessageBase, MessageInput } from "./flashblockJob.ts";

export interface ExecutorOptions {
  /** One thread with messageTask. */
  readonly workers: Pick<EvmWorkers, "run" | "start" | "close">;
  /** Returns the rules as far as they are known now. */
  readonly forks: () => ChainForks;
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  /** Time limit of one search for missing state. A test that counts round trips gives a large one. */
  readonly maxSearchMs?: number;
  /** Reads state at a sealed block from nodes. */
  readonly stateAt: (base: BlockId) => StateSource;
  /** Called when the state of a message could not be read. The read is repeated. */
  readonly onRetry?: (message: { readonly number: bigint; readonly index: number }, cause: string) => void;
}

const MAX_SEARCH_MS = 60;
/** Time limit of one message. */
const MAX_EXECUTION_MS = 10_000;
const READ_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** Executes messages in their thread, one after another. It reads missing state for the thread, until the message's time is over. */
export class ExecutorClient implements Executor {
  readonly #options: ExecutorOptions;
  /** Aborted when the base is replaced: nobody awaits the messages of before. */
  #replaced = new AbortController();
  /** Of the next message in turn. */
  #base: MessageBase = { block: { number: 0n, hash: ZERO_HASH }, through: undefined, beginning: 0 };
  /** Messages and changes of base take turns in their order. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ExecutorOptions) {
    this.#options = options;
    options.workers.start();
  }

  execute(job: FlashblockJob): Promise<Execution> {
    const { signal } = this.#replaced;
    return this.#inTurn(() => this.#run(job, signal));
  }

  rebase(block: BlockId, through: number | undefined): void {
    if (through === undefined) {
      this.#replaced.abort(new Error("the base is another block now"));
      this.#replaced = new AbortController();
    }
    void this.#inTurn(() => {
      const { beginning } = this.#base;
      this.#base = { block, through, beginning: through === undefined ? beginning + 1 : beginning };
    });
  }

  async close(): Promise<void> {
    this.#replaced.abort(new Error("the executor is closed"));
    await this.#options.workers.close();
  }

  #inTurn<T>(act: () => Promise<T> | T): Promise<T> {
    const result = this.#turn.then(act);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #run(job: FlashblockJob, signal: AbortSignal): Promise<Execution> {
    signal.throwIfAborted();
    const { workers, nativeContracts, maxSearchMs = MAX_SEARCH_MS } = this.#options;
    const { number, timestamp } = job.environment;
    const forks = this.#options.forks();
    const rules = newestRulesAt(forks, number, timestamp);
    const isExecutable = areRulesKnown(forks, timestamp);
    const input: MessageInput = { job, base: this.#base, rules, isExecutable, maxSearchMs };
    const { output } = await workers.run({
      ...{ name: "message", input, source: this.#sourceOf(job), nativeContracts, signal },
      isPrivate: true,
      timeoutMs: MAX_EXECUTION_MS,
    });
    return output as Execution;
  }

  /** Returns the state at the base. A read that fails is repeated. */
  #sourceOf({ environment: { number }, index }: FlashblockJob): StateSource {
    const { stateAt, onRetry } = this.#options;
    const source = stateAt(this.#base.block);
    const untilMs = performance.now() + MAX_EXECUTION_MS;
    const read: StateSource["read"] = async (keys, signal, calls) => {
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        try {
          return await source.read(keys, AbortSignal.any([signal, timeoutSignal(READ_TIMEOUT_MS)]), calls);
        } catch (error) {
          if (signal.aborted || performance.now() > untilMs) {
            throw error;
          }
          onRetry?.({ number, index }, error instanceof Error ? error.message : String(error));
          await wait(pauseMs, undefined, { signal });
        }
      }
    };
    return { id: source.id, read };
  }
}
