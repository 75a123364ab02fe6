export interface Budget {
  /** Takes so many calls out of the budget and says how long to wait before they may be sent. */
  take(calls: number): number;
  /** What `take(1)` would say, nothing taken. */
  readonly delayMs: number;
  /** The node asked for a pause (Retry-After). */
  pause(forMs: number): void;
  readonly paused: boolean;
}

const SECOND_MS = 1000;

/** A node's budget of calls: at most one second's worth at once, refilled evenly; none where `requestsPerSecond` is undefined. */
export const createBudget = (
  requestsPerSecond: number | undefined,
  nowMs: () => number = () => performance.now(),
): Budget => {
  const msPerCall = requestsPerSecond === undefined ? 0 : SECOND_MS / requestsPerSecond;
  const burstMs = Math.max(SECOND_MS, msPerCall);
  /** When a full second's worth would be there again, less that second: now or earlier means that a call may be sent. */
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
