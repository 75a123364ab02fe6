import { evmTask } from "../../src/runs/evmTask.ts";
import { startTask } from "../../src/threads/threadTask.ts";

/** `echo` returns its input. `hang` does not end. */
await startTask(
  evmTask({
    echo: async (input: unknown) => input,
    hang: () => new Promise(() => {}),
  }),
);
