/**
 * Creates a function whose promise resolves when this turn of the event loop has read all sockets.
 * Calls in one turn share the promise. Responses that are written together wake their readers once.
 * A write between two reads costs more than the response itself.
 */
export const createEndOfTick = (): (() => Promise<void>) => {
  let ending: Promise<void> | undefined;
  return () => {
    ending ??= new Promise((resolve) => {
      setImmediate(() => {
        ending = undefined;
        resolve();
      });
    });
    return ending;
  };
};
