import { setImmediate as nextTurn } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import { createEngines, type Engines } from "../evm/createEngines.ts";
import type { WorkerTask } from "../threads/startTask.ts";
import type { ExecutorData, FromExecutor, ToExecutor } from "./executorMessages.ts";
import { createFlashblockExecutor, type FlashblockExecutor } from "./flashblockExecutor.ts";
import { StateRequests } from "./stateRequests.ts";
import { JobCancelledError } from "./stateRounds.ts";

const MAX_CODE_BYTES = 128 * 1024 * 1024;

/**
 * The next block waits this long for the jobs of a sealed block. Then it is executed on fetched state. The rest of a sealed
 * block has the same time.
 */
const MAX_AFTER_SEALED_MS = 2_000;

type Run = Pick<ToExecutor & { kind: "run" }, "job" | "rules" | "isExecutable">;

const runJob = async (executor: FlashblockExecutor, { job, rules, isExecutable }: Run): Promise<FromExecutor> => {
  const { id } = job;
  try {
    return { kind: "done", id, execution: await executor.run(job, rules, isExecutable) };
  } catch (error) {
    if (error instanceof JobCancelledError) {
      return { kind: "cancelled", id };
    }
    return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

/** The executor's side in the worker thread. It takes jobs and changes of base in the order of their messages. */
class ExecutorThread {
  readonly #send: (message: FromExecutor) => void;
  readonly #requests: StateRequests;
  readonly #executor: FlashblockExecutor;
  /** Jobs up to this one start from a base that was replaced. They are not run. */
  #cancelledThrough = 0;
  #lastReceived = 0;
  /** Jobs up to `through` belong to a sealed block, and some of them have not ended. */
  #sealed: { readonly through: number; readonly atMs: number } | undefined;
  #queue: Promise<void> = Promise.resolve();
  /** The jobs and the state that the last change of base discarded. */
  #discarded: FlashblockExecutor | undefined;

  constructor(send: (message: FromExecutor) => void, engine: Engines, { nativeContracts }: ExecutorData) {
    this.#send = send;
    this.#requests = new StateRequests(send);
    this.#executor = createFlashblockExecutor(
      {
        fetch: (base, keys, hint) => this.#requests.fetch(base, keys, hint),
        engine,
        codes: new LRUCache<Hash, Uint8Array>({ maxSize: MAX_CODE_BYTES, sizeCalculation: (code) => code.length + 1 }),
        isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
        onRetry: ({ environment, index }, { message }) =>
          send({ kind: "retry", number: environment.number, index, message }),
        isCancelled: ({ id }) => id <= this.#cancelledThrough,
        deadlineMs: ({ id }) => this.#deadlineMs(id),
      },
      { number: 0n, hash: ZERO_HASH },
    );
  }

  receive(message: ToExecutor): void {
    switch (message.kind) {
      case "run":
        this.#lastReceived = message.job.id;
        if (message.isExecutable) {
          this.#executor.expect(message.job, message.rules);
        }
        this.#enqueue(async () => this.#send(await this.#run(message)));
        break;
      case "runRest":
        // The queue does not wait for the rest.
        this.#enqueue(() => void this.#runRest(message));
        break;
      case "rebase":
        this.#rebase(message);
        break;
      case "values":
        this.#requests.resolve(message.id, message.values);
        break;
      case "noValues":
        this.#requests.reject(message.id, message.message);
        break;
    }
  }

  #deadlineMs(id: number): number | undefined {
    const sealed = this.#sealed;
    return sealed && id <= sealed.through ? sealed.atMs + MAX_AFTER_SEALED_MS : undefined;
  }

  /** Messages are received between two steps: execution by itself never waits. */
  #enqueue(step: () => Promise<void> | void): void {
    this.#queue = this.#queue.then(() => nextTurn()).then(step);
  }

  async #run({ job, rules, isExecutable }: Run): Promise<FromExecutor> {
    return job.id <= this.#cancelledThrough
      ? { kind: "cancelled", id: job.id }
      : runJob(this.#executor, { job, rules, isExecutable });
  }

  async #runRest({ job, rules, isExecutable }: Run): Promise<void> {
    const executor = this.#discarded;
    const hasState = executor !== undefined && job.before !== undefined && executor.hasState(job.before);
    this.#send(hasState ? await runJob(executor, { job, rules, isExecutable }) : { kind: "cancelled", id: job.id });
  }

  #rebase({ base, through }: ToExecutor & { kind: "rebase" }): void {
    if (through === undefined) {
      this.#cancelAll();
    }
    this.#sealed = through === undefined ? undefined : { through, atMs: this.#sealed?.atMs ?? performance.now() };
    this.#enqueue(() => {
      if (through === this.#sealed?.through) {
        this.#sealed = undefined;
      }
      this.#discarded =
        through === undefined ? this.#executor.fork(performance.now() + MAX_AFTER_SEALED_MS) : undefined;
      this.#executor.rebase(base, through);
    });
  }

  /** Jobs that were received until now are not run, and no longer wait for state. */
  #cancelAll(): void {
    this.#cancelledThrough = this.#lastReceived;
    this.#requests.rejectAll("the base is another block now");
  }
}

/** The task of a thread that executes flashblocks. Its data is ExecutorData. */
export const executorTask: WorkerTask = async (port: MessagePort, workerData) => {
  const data = workerData as ExecutorData;
  const engines = await createEngines(data.engine);
  const thread = new ExecutorThread((message) => port.postMessage(message), engines, data);
  port.on("message", (message: ToExecutor) => thread.receive(message));
};
