import { evmTask } from "../../src/evm/runs/evmTask.ts";
import { startTask } from "../../src/threads/threadTask.ts";

let runs = 0;

/** `echo` returns its input. `hang` does not end, and `once` ends only the first time in each thread. */
await startTask(
  evmTask({
    echo: async (input: unknown) => input,
    once: () => (runs++ === 0 ? Promise.resolve() : new Promise(() => {})),
    hang: () => new Promise(() => {}),
  }),
);
