export interface Budget {
  /** Takes calls out of the budget and returns the milliseconds to wait before they may be sent. */
  take(calls: number): number;
  /** The result that `take(1)` would have, without taking a call. */
  readonly delayMs: number;
  /** Pauses all calls, because the node sent Retry-After. */
  pause(forMs: number): void;
  readonly paused: boolean;
}

const SECOND_MS = 1000;

/**
 * Creates a node's budget of calls. It is refilled evenly and holds the calls of up to one second.
 * There is no limit if `requestsPerSecond` is undefined.
 */
export const createBudget = (
  requestsPerSecond: number | undefined,
  nowMs: () => number = () => performance.now(),
): Budget => {
  const msPerCall = requestsPerSecond === undefined ? 0 : SECOND_MS / requestsPerSecond;
  const burstMs = Math.max(SECOND_MS, msPerCall);
  /** The time when the budget is full again, minus the burst. A call may be sent at this time or later. */
  let freeAtMs = Number.NEGATIVE_INFINITY;
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  const delay = (now: number, calls: number): number =>
    Math.max(0, pausedUntilMs - now, Math.max(freeAtMs, now - burstMs) + msPerCall * calls - now);

  return {
    take: (calls) => {
      const now = nowMs();
      const waitMs = delay(now, calls);
      freeAtMs = Math.max(freeAtMs, now - burstMs) + msPerCall * calls;
      return waitMs;
    },
    get delayMs() {
      return delay(nowMs(), 1);
    },
    pause: (forMs) => {
      pausedUntilMs = Math.max(pausedUntilMs, nowMs() + forMs);
    },
    get paused() {
      return nowMs() < pausedUntilMs;
    },
  };
};
