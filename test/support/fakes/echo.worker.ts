import { evmTask } from "../../../src/evm/evmTask.ts";
import { startTask } from "../../../src/workers/startTask.ts";

/** Two jobs: one returns its input, the other does not end. */
await startTask(
  evmTask({
    echo: async (input: unknown) => input,
    hang: () => new Promise(() => {}),
  }),
);
