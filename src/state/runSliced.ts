import { setImmediate as nextTick } from "node:timers/promises";

/** The longest time that a change holds the thread, apart from one step. */
const SLICE_MS = 1;
/** Steps between two looks at the clock. A step takes about a microsecond. */
const STEPS_PER_LOOK = 32;

/**
 * Runs a change of the state values to its end, with other work between slices of SLICE_MS.
 * Returns undefined if `isCurrent` became false: the change is then abandoned.
 */
export const runSliced = async <T>(steps: Generator<unknown, T>, isCurrent: () => boolean): Promise<T | undefined> => {
  let endMs = performance.now() + SLICE_MS;
  for (let count = 1; ; count++) {
    const next = steps.next();
    if (next.done) {
      return next.value;
    }
    if (count % STEPS_PER_LOOK === 0 && performance.now() >= endMs) {
      await nextTick();
      if (!isCurrent()) {
        return undefined;
      }
      endMs = performance.now() + SLICE_MS;
    }
  }
};
