import { setTimeout as wait } from "node:timers/promises";
import { errorText } from "../core/errorText.ts";
import type { BlockId } from "../core/heads.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import type { StateSource } from "../core/stateReader.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import { areRulesKnown, type ChainForks, newestRulesAt } from "../ethereum/rules.ts";
import type { EvmWorkers } from "../runs/evmWorkers.ts";
import type { ExecutableMessage, Execution, Executor, MessageBase, MessageInput } from "./executableMessage.ts";

export interface ExecutorOptions {
  /** A lane of one thread, which has messageRuns. */
  readonly workers: Pick<EvmWorkers, "run" | "close">;
  /** Returns the rules as far as they are known now. */
  readonly forks: () => ChainForks;
  /** Addresses, or prefixes of addresses, whose code is native on this chain. */
  readonly nativeContracts: readonly string[];
  /** Time limit of one search for missing state. A test that counts round trips gives a large one. */
  readonly maxSearchMs?: number;
  /** Reads state at a sealed block from nodes. */
  readonly stateAt: (base: BlockId) => StateSource;
  /** Called when the state of a message could not be read. The read is repeated. */
  readonly onRetry?: OnMessage;
  /** Called when a message had no result in time, or its thread ended. */
  readonly onFailed?: OnMessage;
}

type OnMessage = (message: { readonly number: bigint; readonly index: number }, cause: string) => void;

const MAX_SEARCH_MS = 60;
/** Time limit of one message. */
const MAX_EXECUTION_MS = 10_000;
/** Messages of a sealed block end this long after it, because those of the next block wait for them. */
const MAX_AFTER_SEALED_MS = 2_000;
/** Waiting messages whose state is fetched with that of the message in turn. */
const MAX_AHEAD = 16;
const READ_TIMEOUT_MS = 5_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 400;

/** Executes messages in their thread, one after another. It reads missing state for the thread, until the message's time is over. */
export class ExecutorClient implements Executor {
  readonly #options: ExecutorOptions;
  /** Of the messages that have not ended, by id. Those of a base that is replaced are aborted: nobody awaits them. */
  readonly #running = new Map<number, { readonly message: ExecutableMessage; readonly ending: AbortController }>();
  /** Of the next message in turn. */
  #base: MessageBase = { block: { number: 0n, hash: ZERO_HASH }, through: undefined, beginning: 0 };
  /** Messages and changes of base take turns in their order. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  async execute(message: ExecutableMessage): Promise<Execution> {
    const ending = new AbortController();
    this.#running.set(message.id, { message, ending });
    try {
      return await this.#inTurn(() => this.#run(message, ending.signal));
    } catch (error) {
      if (!ending.signal.aborted) {
        this.#options.onFailed?.({ number: message.environment.number, index: message.index }, errorText(error));
      }
      throw error;
    } finally {
      this.#running.delete(message.id);
    }
  }

  rebase(block: BlockId, through: number | undefined): void {
    if (through === undefined) {
      this.#abort("the base is another block now");
    } else if (this.#running.size > 0) {
      setTimeout(() => this.#abort("its block is sealed", through), MAX_AFTER_SEALED_MS).unref();
    }
    void this.#inTurn(() => {
      const { beginning } = this.#base;
      this.#base = { block, through, beginning: through === undefined ? beginning + 1 : beginning };
    });
  }

  async close(): Promise<void> {
    this.#abort("the executor is closed");
    await this.#options.workers.close();
  }

  #abort(reason: string, through = Number.POSITIVE_INFINITY): void {
    for (const { message, ending } of this.#running.values()) {
      if (message.id <= through) {
        ending.abort(new Error(reason));
      }
    }
  }

  #inTurn<T>(act: () => Promise<T> | T): Promise<T> {
    const result = this.#turn.then(act);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  async #run(message: ExecutableMessage, signal: AbortSignal): Promise<Execution> {
    signal.throwIfAborted();
    const { workers, nativeContracts, maxSearchMs = MAX_SEARCH_MS } = this.#options;
    const { number, timestamp } = message.environment;
    const forks = this.#options.forks();
    const rules = newestRulesAt(forks, number, timestamp);
    const isExecutable = areRulesKnown(forks, timestamp);
    const ahead = this.#after(message);
    const input: MessageInput = { message, ahead, base: this.#base, rules, isExecutable, maxSearchMs };
    const { output } = await workers.run({
      ...{ name: "message", input, source: this.#sourceOf(message), nativeContracts, signal },
      isPrivate: true,
      timeoutMs: MAX_EXECUTION_MS,
    });
    return output as Execution;
  }

  #after({ id }: ExecutableMessage): readonly ExecutableMessage[] {
    const waiting = [...this.#running.values()].filter(
      ({ message, ending }) => message.id > id && !ending.signal.aborted,
    );
    return waiting.map(({ message }) => message).slice(0, MAX_AHEAD);
  }

  /** Returns the state at the base. Most messages read nothing of it. A read that fails is repeated. */
  #sourceOf({ environment: { number }, index }: ExecutableMessage): StateSource {
    const { stateAt, onRetry } = this.#options;
    const { block } = this.#base;
    let source: StateSource | undefined;
    const untilMs = performance.now() + MAX_EXECUTION_MS;
    const read: StateSource["read"] = async (keys, signal, calls) => {
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        try {
          source ??= stateAt(block);
          return await source.read(keys, AbortSignal.any([signal, timeoutSignal(READ_TIMEOUT_MS)]), calls);
        } catch (error) {
          if (signal.aborted || performance.now() > untilMs) {
            throw error;
          }
          onRetry?.({ number, index }, errorText(error));
          await wait(pauseMs, undefined, { signal });
        }
      }
    };
    return { id: block.hash, read };
  }
}
