import { setImmediate as turn } from "node:timers/promises";
import { type ChainForks, rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { ExecutableMessage, Execution, Executor } from "../../src/pending/executableMessage.ts";
import { createMessageRunner, type MessageRunnerOptions } from "../support/builders/messageRunner.ts";

const engines = await createEngines();

export interface RunnerExecutorOptions {
  readonly forks: ChainForks;
  readonly fetch: MessageRunnerOptions["fetch"];
  /** Delay between the end of an execution and its result. */
  readonly delayMs: number;
}

/** Creates an executor in this thread, so that a test can wait for all jobs before it advances the time. */
export const createRunnerExecutor = ({ forks, fetch, delayMs }: RunnerExecutorOptions) => {
  const runner = createMessageRunner({ fetch, engine: engines }, { number: 0n, hash: "0x" });
  let queue: Promise<unknown> = Promise.resolve();
  let lastId = 0;
  let cancelledThrough = 0;
  const inOrder = <T>(act: () => Promise<T> | T): Promise<T> => {
    const done = queue.then(act);
    queue = done.catch(() => {});
    return done;
  };
  const run = (job: ExecutableMessage): Promise<Execution> => {
    const { number, timestamp } = job.environment;
    if (job.id <= cancelledThrough) {
      throw new Error("the base is another one");
    }
    return runner.run(job, rulesAt(forks, number, timestamp));
  };
  const executor: Executor = {
    execute: async (job) => {
      lastId = job.id;
      const execution = await inOrder(() => run(job));
      if (delayMs > 0) {
        await new Promise((resolve) => setTimeout(resolve, delayMs));
      }
      return execution;
    },
    rebase: (base, through) => {
      if (through === undefined) {
        cancelledThrough = lastId;
      }
      inOrder(() => runner.rebase(base, through)).catch(() => {});
    },
    close: async () => {},
  };
  /** Resolves once every job has run and its result is delivered, except for the delay. */
  const idle = async (): Promise<void> => {
    for (let seen: unknown; seen !== queue; ) {
      seen = queue;
      await queue;
      await turn();
    }
  };
  return { executor, idle };
};
