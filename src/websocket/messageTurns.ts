import { TurnClock } from "../jsonrpc/turnClock.ts";

/** Messages that are handled in one turn. Their responses are sent behind them, when the time of the turn was read. */
const MAX_IN_TURN = 128;
/** Less than that of batches, which may be in the messages. */
const MAX_TURN_MS = 3;

/**
 * Handles the messages of all WebSockets in turn. One chunk of a socket contains hundreds of messages, and one turn of the event loop
 * reads many chunks. Messages that find no time in this turn wait for a later one, in turn with those of other connections.
 */
export class MessageTurns {
  readonly #clock = new TurnClock({ maxMs: MAX_TURN_MS, maxCalls: MAX_IN_TURN });
  /** By connection, in the order of their turns. */
  readonly #waiting = new Map<object, (() => void)[]>();

  /** Handles a message now or later, and after all earlier ones of its connection. */
  run(connection: object, handle: () => void): void {
    if (this.#waiting.size === 0 && !this.#clock.isOver) {
      handle();
      return;
    }
    if (this.#waiting.size === 0) {
      setImmediate(this.#runTurn);
    }
    const messages = this.#waiting.get(connection);
    if (messages === undefined) {
      this.#waiting.set(connection, [handle]);
    } else {
      messages.push(handle);
    }
  }

  readonly #runTurn = (): void => {
    // An entry that is added again comes after the others.
    for (const [connection, messages] of this.#waiting) {
      if (this.#clock.isOver) {
        break;
      }
      this.#waiting.delete(connection);
      const [handle] = messages.splice(0, 1);
      handle?.();
      if (messages.length > 0) {
        this.#waiting.set(connection, messages);
      }
    }
    if (this.#waiting.size > 0) {
      setImmediate(this.#runTurn);
    }
  };
}
