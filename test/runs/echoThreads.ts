import type { TestContext } from "node:test";
import type { StateSource } from "../../src/core/stateReader.ts";
import { EvmThreads } from "../../src/runs/evmThreads.ts";
import type { EvmWorkers } from "../../src/runs/evmWorkers.ts";
import type { RunOutcome } from "../../src/runs/runMessages.ts";

const source: StateSource = { id: "none", read: () => Promise.reject(new Error("no run reads state")) };

/** Creates threads that return the input of a run, until the end of the test. */
export const startEchoThreads = (t: TestContext) => {
  const counts = [0];
  const threads = new EvmThreads({
    entry: { url: new URL("./echo.worker.ts", import.meta.url), task: "echo" },
    onThreads: (count) => counts.push(count),
  });
  t.after(() => threads.close());
  /** Now, and most at once. */
  return { threads, count: () => counts.at(-1), most: () => Math.max(...counts) };
};

export const runEcho = (
  workers: EvmWorkers,
  name: "echo" | "hang",
  input: unknown,
  signal = new AbortController().signal,
): Promise<RunOutcome> => workers.run({ name, input, source, nativeContracts: [], timeoutMs: 30_000, signal });
