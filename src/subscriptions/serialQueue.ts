/** Runs tasks one after another, in the order they were given; one that fails does not stop the next. */
export const createSerialQueue = (onError: (error: unknown) => void): ((task: () => Promise<void> | void) => void) => {
  let last: Promise<void> = Promise.resolve();
  return (task) => {
    last = last.then(task).catch(onError);
  };
};
