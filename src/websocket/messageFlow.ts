import type { WebSocket } from "ws";
import { TurnClock } from "../jsonrpc/turnClock.ts";
import { type MemoryUse, UNCOUNTED_BYTES } from "../limits/memoryBudget.ts";
import { IncompleteMessage } from "./incompleteMessage.ts";
import type { SendQueue } from "./sendQueue.ts";

/** Messages of one connection in flight at a time. At this number, reading pauses until one is handled. */
const MAX_IN_FLIGHT = 64;

/**
 * Limits the messages of one connection that are received or in flight.
 * Reading pauses while too many are in flight, or while the client does not read their responses.
 */
export class MessageFlow {
  readonly #socket: WebSocket;
  readonly #sendQueue: SendQueue;
  readonly #received: MemoryUse | undefined;
  /** Calls whose responses wait until the client has read earlier ones. */
  readonly #waiting: (() => void)[] = [];
  #onIdle: (() => void) | undefined;
  #inFlight = 0;
  #isStopped = false;
  readonly #incomplete = new IncompleteMessage();
  #lastCallMs = performance.now();

  /** `received` counts a message that is not complete. */
  constructor(socket: WebSocket, sendQueue: SendQueue, received: MemoryUse | undefined) {
    this.#socket = socket;
    this.#sendQueue = sendQueue;
    this.#received = received;
  }

  /** Whether no message is in flight, and none began in the last `forMs`. */
  isIdle(forMs: number): boolean {
    return this.#inFlight === 0 && performance.now() - this.#lastCallMs > forMs;
  }

  /** Discards all further messages. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Counts what a message costs that is not complete. Returns the reason why it is refused. */
  receive(chunk: Uint8Array): "overBudget" | "tooManyPieces" | undefined {
    this.#incomplete.add(chunk);
    const { costBytes, areTooMany } = this.#incomplete;
    if (areTooMany) {
      return "tooManyPieces";
    }
    if (costBytes <= UNCOUNTED_BYTES) {
      this.#received?.end();
      return undefined;
    }
    return this.#received?.trySet(costBytes) === false ? "overBudget" : undefined;
  }

  /** Called with a complete message. Returns false if it is discarded. */
  begin(): boolean {
    if (this.#isStopped) {
      return false;
    }
    this.#lastCallMs = performance.now();
    this.#inFlight++;
    if (this.#inFlight >= MAX_IN_FLIGHT || this.#sendQueue.isFull) {
      this.#socket.pause();
    }
    return true;
  }

  /** Called when a message is handled. */
  end(): void {
    this.#inFlight--;
    this.onRoom();
    if (this.#inFlight === 0) {
      this.#onIdle?.();
    }
  }

  /** Called when the send queue is no longer full. */
  onRoom(): void {
    this.sendWaiting();
    this.#resume();
  }

  /** Continues with the next response that waits, if there is room. */
  sendWaiting(): void {
    if (this.#waiting.length > 0 && !this.#sendQueue.isFull) {
      this.#waiting.shift()?.();
    }
  }

  /** Resolves when the client has read enough of earlier responses. */
  async waitForRoom(): Promise<void> {
    while (this.#sendQueue.isFull && this.#socket.readyState === this.#socket.OPEN) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Called when the connection is closed. No response waits any more. */
  close(): void {
    for (const wake of this.#waiting.splice(0)) {
      wake();
    }
    this.#received?.end();
  }

  /** Resolves when no message is in flight. */
  drained(): Promise<void> {
    if (this.#inFlight === 0) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #resume(): void {
    const canRead = this.#inFlight < MAX_IN_FLIGHT && !this.#sendQueue.isFull && !this.#isStopped;
    if (canRead && this.#socket.isPaused) {
      this.#socket.resume();
    }
  }
}

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
