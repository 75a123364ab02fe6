import type { Lifespan } from "./redis.ts";

/** Runs `use`, and then ends all that it has started, the newest first. */
export const withLifespan = async <T>(use: (t: Lifespan) => Promise<T>): Promise<T> => {
  const ends: (() => unknown)[] = [];
  try {
    return await use({ after: (end) => ends.unshift(end) });
  } finally {
    for (const end of ends) {
      await end();
    }
  }
};
