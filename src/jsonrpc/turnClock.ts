/** Calls of batches and WebSockets use this much of a turn of the event loop. The calls of other clients have the rest. */
const MAX_TURN_MS = 8;

/** Limits the time that many calls together take of one turn of the event loop. */
export class TurnClock {
  #startMs: number | undefined;
  readonly #endTurn = (): void => {
    this.#startMs = undefined;
  };

  get isOver(): boolean {
    return this.isOverAt(performance.now());
  }

  /** Whether the calls of this turn have used their time. The first question of a turn starts it. */
  isOverAt(nowMs: number): boolean {
    if (this.#startMs === undefined) {
      this.#startMs = nowMs;
      setImmediate(this.#endTurn);
      return false;
    }
    return nowMs - this.#startMs > MAX_TURN_MS;
  }
}
