/**
 * Calls of batches use this much of a turn of the event loop. The calls of other clients have the rest.
 * Calls that start in one turn share requests to nodes: less time would cost more requests.
 */
const MAX_TURN_MS = 8;

export interface TurnLimits {
  readonly maxMs?: number;
  /** For calls whose work continues after the turn's time was read, as that of promises does. Default: no limit. */
  readonly maxCalls?: number;
}

/** Limits the time that many calls together take of one turn of the event loop. */
export class TurnClock {
  readonly #maxMs: number;
  readonly #maxCalls: number;
  #startMs: number | undefined;
  #calls = 0;
  readonly #endTurn = (): void => {
    this.#startMs = undefined;
  };

  constructor({ maxMs = MAX_TURN_MS, maxCalls = Number.POSITIVE_INFINITY }: TurnLimits = {}) {
    this.#maxMs = maxMs;
    this.#maxCalls = maxCalls;
  }

  /** Starts the time of this turn, unless it has started. Work before the first question then counts. */
  begin(nowMs: number = performance.now()): void {
    if (this.#startMs === undefined) {
      this.#startMs = nowMs;
      this.#calls = 0;
      setImmediate(this.#endTurn);
    }
  }

  get isOver(): boolean {
    return this.isOverAt(performance.now());
  }

  /** Whether the calls of this turn have used their time. The first question of a turn starts it. Ask once before each call. */
  isOverAt(nowMs: number): boolean {
    if (this.#startMs === undefined) {
      this.begin(nowMs);
      this.#calls = 1;
      return false;
    }
    this.#calls++;
    return this.#calls > this.#maxCalls || nowMs - this.#startMs > this.#maxMs;
  }
}
