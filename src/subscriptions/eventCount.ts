/** Numbers what happens on a chain, so that a subscription is told what came after it, and nothing else. */
export interface EventCount {
  readonly current: number;
  next(): number;
}

export const createEventCount = (): EventCount => {
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
