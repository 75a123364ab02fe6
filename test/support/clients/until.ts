import { setTimeout } from "node:timers/promises";

const STEP_MS = 10;
const LIMIT_MS = 20_000;

/** Waits for a condition in another process that sends no event. Only for tests with real servers: inside one process wait for events. */
export const until = async (isSo: () => boolean | Promise<boolean>, what: string): Promise<void> => {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await isSo())) {
    if (performance.now() > endMs) {
      throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
    }
    await setTimeout(STEP_MS);
  }
};
