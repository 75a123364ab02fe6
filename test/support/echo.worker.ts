import { serveRuns } from "../../src/evm/serveRuns.ts";

/** A run that gives its input back, and one that does not end. */
serveRuns({
  echo: async (input: unknown) => input,
  hang: () => new Promise(() => {}),
});
