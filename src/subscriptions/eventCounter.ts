/** Numbers the events of a chain, so that a subscription gets only the events after its own start. */
export interface EventCounter {
  /** Number of the newest event; 0 before the first. */
  readonly current: number;
  /** Counts an event and returns its number. */
  next(): number;
}

export const createEventCounter = (): EventCounter => {
  let current = 0;
  return {
    get current() {
      return current;
    },
    next: () => {
      current++;
      return current;
    },
  };
};
