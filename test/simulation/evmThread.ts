import { MessageChannel } from "node:worker_threads";
import type { StateSource } from "../../src/core/stateReader.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { EngineKind } from "../../src/evm/engine.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { type EvmRuns, evmTask } from "../../src/runs/evmTask.ts";
import type { EvmRun, EvmRunOutput, StateRequest } from "../../src/runs/runMessages.ts";
import { Channel } from "../../src/threads/channel.ts";
import type { JobFunctions } from "../../src/threads/workerSlot.ts";
import { wrapEngines } from "../support/builders/wrapEngines.ts";

export interface EvmThread {
  run(run: Pick<EvmRun, "name" | "input"> & Partial<EvmRun>): Promise<EvmRunOutput>;
  /** The transactions that the engine has executed. */
  readonly transactions: readonly TransactionMessage[];
  close(): void;
}

/** Starts the task of a worker in this thread, and records the transactions that its engine executes. */
export const startEvmThread = async (
  runs: EvmRuns,
  source: StateSource,
  engine: EngineKind = "fast",
): Promise<EvmThread> => {
  const transactions: TransactionMessage[] = [];
  const { port1: port, port2: thread } = new MessageChannel();
  const task = evmTask(runs, async (kind, options) =>
    wrapEngines(await createEngines(kind, options), (executing, context, message, settings) => {
      transactions.push(message);
      return executing.transact(context, message, settings);
    }),
  );
  await task(thread, { engine });
  const caller = new Channel<JobFunctions, Record<string, never>>(port, {});
  return {
    run: (run) => {
      const input: EvmRun = {
        chain: "",
        engine: "fast",
        module: "ethereum",
        stateId: source.id,
        nativeContracts: [],
        tracesReads: false,
        isPrivate: false,
        expected: undefined,
        timeLimitMs: Number.POSITIVE_INFINITY,
        ...run,
      };
      const onAsk = (request: unknown) => source.read((request as StateRequest).keys, new AbortController().signal);
      return caller.call("run", input, { onAsk }) as Promise<EvmRunOutput>;
    },
    transactions,
    close: () => port.close(),
  };
};
