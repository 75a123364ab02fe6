import { setImmediate as nextTick } from "node:timers/promises";

/** The longest time that a change holds the thread, apart from one step. */
const SLICE_MS = 0.5;
/** Steps between two looks at the clock. A step takes about a microsecond. */
const STEPS_PER_LOOK = 32;

/** Runs steps to their end, with other work between slices of SLICE_MS. */
export const runSliced = async <T>(steps: Generator<unknown, T>): Promise<T> => {
  for (;;) {
    const result = runSlice(steps);
    if (result.done) {
      return result.value;
    }
    await nextTick();
  }
};

/** Runs like runSliced. Returns undefined if `isCurrent` became false between two slices: the rest is then abandoned. */
export const runSlicedWhile = async <T>(
  steps: Generator<unknown, T>,
  isCurrent: () => boolean,
): Promise<T | undefined> => {
  for (;;) {
    const result = runSlice(steps);
    if (result.done) {
      return result.value;
    }
    await nextTick();
    if (!isCurrent()) {
      return undefined;
    }
  }
};

/** Runs steps until the end of one slice. */
const runSlice = <T>(steps: Generator<unknown, T>): IteratorResult<unknown, T> => {
  const endMs = performance.now() + SLICE_MS;
  for (let count = 1; ; count++) {
    const next = steps.next();
    if (next.done || (count % STEPS_PER_LOOK === 0 && performance.now() >= endMs)) {
      return next;
    }
  }
};
