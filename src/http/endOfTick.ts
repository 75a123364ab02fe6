/**
 * Resolves when this turn of the event loop has read all that came; one promise for all who ask in the turn. Answers that are then
 * written one after the other wake their readers once: a write between two reads costs its caller more than the answer itself.
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
