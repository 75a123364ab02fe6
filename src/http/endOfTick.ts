/**
 * Creates a function that runs tasks when this turn of the event loop has read all sockets.
 * Responses that are written together wake their readers once. A write between two reads costs more than the response
 * itself. A task must not throw.
 */
export const createEndOfTick = (): ((task: () => void) => void) => {
  let tasks: (() => void)[] = [];
  const run = (): void => {
    const due = tasks;
    tasks = [];
    for (const task of due) {
      task();
    }
  };
  return (task) => {
    if (tasks.length === 0) {
      setImmediate(run);
    }
    tasks.push(task);
  };
};
