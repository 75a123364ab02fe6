import { setTimeout } from "node:timers/promises";

const STEP_MS = 10;
/** After this time, steps are longer: the process that is asked should work instead of answering. */
const SHORT_STEPS_MS = 200;
const LONG_STEP_MS = 40;
/** It only ends a test that hangs: 60 s are too short on two cores with a load of 30. */
const LIMIT_MS = 180_000;

/** Waits for a condition in another process that sends no event. Only for tests with real servers: inside one process wait for events. */
export const until = async (isSo: () => boolean | Promise<boolean>, what: string): Promise<void> => {
  const startMs = performance.now();
  while (!(await isSo())) {
    const tookMs = performance.now() - startMs;
    if (tookMs > LIMIT_MS) {
      throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
    }
    await setTimeout(tookMs < SHORT_STEPS_MS ? STEP_MS : LONG_STEP_MS);
  }
};
