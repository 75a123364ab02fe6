/** Runs steps to their end at once. */
export const runAll = <T>(steps: Generator<unknown, T>): T => {
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done) {
      return next.value;
    }
  }
};
