import type { Clock } from "../../../src/core/clock.ts";

export interface FakeClock extends Clock {
  /** Advances the time and wakes sleepers in order. After each one, pending promises run. */
  advance(byMs: number): Promise<void>;
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn += 1) {
    await new Promise(setImmediate);
  }
};

/** Creates a clock that only the test advances. */
export const createFakeClock = (): FakeClock => {
  let nowMs = 1_000_000;
  const sleepers = new Set<{ readonly dueMs: number; readonly wake: () => void }>();
  return {
    nowMs: () => nowMs,
    sleep: (forMs, signal) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const sleeper = {
        dueMs: nowMs + forMs,
        wake: () => {
          sleepers.delete(sleeper);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal.addEventListener("abort", sleeper.wake, { once: true });
      if (signal.aborted) {
        sleeper.wake();
      }
      return promise;
    },
    advance: async (byMs) => {
      const endMs = nowMs + byMs;
      await settle();
      for (;;) {
        const [next] = [...sleepers].sort((a, b) => a.dueMs - b.dueMs);
        if (!next || next.dueMs > endMs) {
          break;
        }
        nowMs = Math.max(nowMs, next.dueMs);
        next.wake();
        await settle();
      }
      nowMs = endMs;
    },
  };
};
