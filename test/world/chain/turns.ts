/** Runs changes of a chain one at a time. */
export const createTurns = () => {
  let last: Promise<unknown> = Promise.resolve();
  return (act: () => Promise<void>): Promise<void> => {
    const turn = last.then(act);
    last = turn.catch(() => undefined);
    return turn;
  };
};
