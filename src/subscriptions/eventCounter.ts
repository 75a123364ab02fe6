/** Numbers what happens on a chain, so that a subscription is told what came after it, and nothing else. */
export interface EventCounter {
  readonly current: number;
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
