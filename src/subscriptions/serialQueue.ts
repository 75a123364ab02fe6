/** Creates a queue that runs tasks one at a time, in order. A task that fails does not stop the next. */
export const createSerialQueue = (onError: (error: unknown) => void): ((task: () => Promise<void> | void) => void) => {
  let last: Promise<void> = Promise.resolve();
  return (task) => {
    last = last.then(task).catch(onError);
  };
};

/** Creates a queue that runs tasks of one key one at a time, in order. A task that fails does not stop the next. */
export const createKeyedQueue = () => {
  const last = new Map<string, Promise<unknown>>();
  return <T>(key: string, task: () => Promise<T>): Promise<T> => {
    const run = (last.get(key) ?? Promise.resolve()).then(task, task);
    last.set(key, run);
    const removeIfLast = (): void => {
      if (last.get(key) === run) {
        last.delete(key);
      }
    };
    run.then(removeIfLast, removeIfLast);
    return run;
  };
};
