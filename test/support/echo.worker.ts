import { workerMain } from "../../src/evm/workerMain.ts";

/** A run that gives its input back, and one that does not end. */
workerMain({
  echo: async (input: unknown) => input,
  hang: () => new Promise(() => {}),
});
