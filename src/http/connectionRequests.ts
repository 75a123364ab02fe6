import type { Socket } from "node:net";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, the next ones wait. */
const MAX_IN_FLIGHT = 16;

/** The requests of one connection that have no response. */
export class ConnectionRequests {
  readonly #socket: Socket;
  readonly #onEnd: (requests: ConnectionRequests) => void;
  readonly #waiting: (() => void)[] = [];
  #afterAll: (() => void) | undefined;
  #inFlight = 0;
  /** From the first request that waits until the responses of their last turn are written. */
  #isBehind = false;
  #isPaused = false;
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

  /** Whether all of them have their responses. */
  get areAnswered(): boolean {
    return this.#inFlight === 0 && !this.#isBehind;
  }

  begin(): void {
    this.#inFlight++;
    this.#pauseOrResume();
  }

  end(): void {
    this.#inFlight--;
    this.#pauseOrResume();
    this.#onEnd(this);
  }

  wait(handle: () => void): void {
    this.#waiting.push(handle);
    this.#isBehind = true;
    this.#pauseOrResume();
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
    this.#isBehind = this.isWaiting;
    this.#pauseOrResume();
  }

  afterAll(callback: () => void): void {
    this.#afterAll = callback;
  }

  #pauseOrResume(): void {
    if (this.areAnswered && this.#afterAll !== undefined) {
      // The last responses are written at the end of this turn.
      setImmediate(this.#afterAll);
      this.#afterAll = undefined;
    }
    const isFull = this.#isBehind || !this.canHandle;
    if (isFull === this.#isPaused) {
      return;
    }
    this.#isPaused = isFull;
    if (isFull) {
      this.#socket.on("resume", this.#pauseAgain);
      this.#socket.pause();
    } else {
      this.#socket.off("resume", this.#pauseAgain);
      this.#socket.resume();
    }
  }
}
