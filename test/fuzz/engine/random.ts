import { createRandom } from "../../support/builders/randomValues.ts";

/** Random choices of one case. The same seed and case give the same choices. */
export interface Choices {
  /** From 0, below 1. */
  next(): number;
  /** An integer from 0, below `limit`. */
  below(limit: number): number;
  chance(share: number): boolean;
  pick<T>(values: readonly T[]): T;
}

const CASE_STEP = 0x9e3779b1;

export const createChoices = (seed: number, index: number): Choices => {
  const next = createRandom((seed ^ Math.imul(index + 1, CASE_STEP)) >>> 0);
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    chance: (share) => next() < share,
    pick: <T>(values: readonly T[]): T => {
      if (values.length === 0) {
        throw new RangeError("nothing to pick from");
      }
      return values[below(values.length)] as T;
    },
  };
};
