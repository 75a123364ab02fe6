import { evmTask } from "../../../src/evm/evmTask.ts";
import { startTask } from "../../../src/workers/startTask.ts";

/** A run that returns its input, and one that does not end. */
await startTask(
  evmTask({
    echo: async (input: unknown) => input,
    hang: () => new Promise(() => {}),
  }),
);
