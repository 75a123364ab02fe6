import type { Socket } from "node:net";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, the next ones wait. */
const MAX_IN_FLIGHT = 16;

/** The requests of one connection that have no response. */
export class ConnectionRequests {
  readonly #socket: Socket;
  readonly #onEnd: (requests: ConnectionRequests) => void;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;
  /** From the first request that waits until the responses of their last turn are written. */
  #isBehind = false;
  /** The HTTP parser resumes the socket after each request. This event is emitted before more is read. */
  readonly #pauseAgain = (): void => {
    this.#socket.pause();
  };

  constructor(socket: Socket, onEnd: (requests: ConnectionRequests) => void) {
    this.#socket = socket;
    this.#onEnd = onEnd;
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  get canHandle(): boolean {
    return this.#inFlight < MAX_IN_FLIGHT;
  }

  begin(): void {
    this.#inFlight++;
  }

  end(): void {
    this.#inFlight--;
    this.#onEnd(this);
  }

  /** While a request waits, no more are read. */
  wait(handle: () => void): void {
    this.#waiting.push(handle);
    if (!this.#isBehind) {
      this.#isBehind = true;
      this.#socket.on("resume", this.#pauseAgain);
      this.#socket.pause();
    }
  }

  /** Handles the request that waits longest. The requests of a closed connection have no reader. */
  handleNext(): void {
    const handle = this.#waiting.shift();
    if (this.#socket.destroyed) {
      this.#waiting.length = 0;
    } else {
      handle?.();
    }
  }

  /** Call it when the responses of the last turn are written. */
  endTurn(): void {
    if (this.#isBehind && !this.isWaiting) {
      this.#isBehind = false;
      this.#socket.off("resume", this.#pauseAgain);
      this.#socket.resume();
    }
  }
}
