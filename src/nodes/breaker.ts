export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  readonly openMs: number;
  readonly nowMs?: () => number;
  readonly onChange?: (open: boolean) => void;
}

export interface Breaker {
  /** Closed, or half open with its one probe not yet sent. */
  readonly available: boolean;
  /** To be told before a request is sent: half open, it is the probe. */
  started(): void;
  succeeded(): void;
  failed(): void;
  /** The request came to nothing that speaks for or against the node, e.g. its caller left. */
  ended(): void;
}

/** Closed until so many failures in a row; then open for a while; then one request decides (half open). */
export const createBreaker = ({
  failures,
  openMs,
  nowMs = () => performance.now(),
  onChange,
}: BreakerOptions): Breaker => {
  let failed = 0;
  let openUntilMs: number | undefined;
  let probing = false;

  const halfOpen = (): boolean => openUntilMs !== undefined && nowMs() >= openUntilMs;

  return {
    get available() {
      return openUntilMs === undefined || (halfOpen() && !probing);
    },
    started: () => {
      probing = halfOpen();
    },
    succeeded: () => {
      probing = false;
      failed = 0;
      // What was on its way when it opened says nothing about now.
      if (halfOpen()) {
        openUntilMs = undefined;
        onChange?.(false);
      }
    },
    failed: () => {
      failed += 1;
      probing = false;
      if (openUntilMs === undefined && failed >= failures) {
        openUntilMs = nowMs() + openMs;
        onChange?.(true);
      } else if (halfOpen()) {
        openUntilMs = nowMs() + openMs;
      }
    },
    ended: () => {
      probing = false;
    },
  };
};
