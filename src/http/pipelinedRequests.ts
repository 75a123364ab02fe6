import type { Socket } from "node:net";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, the next ones wait. */
const MAX_IN_FLIGHT = 64;
/** Part of one turn of the event loop for requests that wait. Other clients have the rest. */
const TURN_MS = 1;

/** The requests of one connection that have no response. While some wait to start, no more are read. */
class ConnectionRequests {
  readonly #socket: Socket;
  readonly #onEnd: (requests: ConnectionRequests) => void;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;
  #isPaused = false;
  /** The HTTP parser resumes the socket after each request. This event is emitted before more is read. */
  readonly #pauseAgain = (): void => {
    this.#socket.pause();
  };

  constructor(socket: Socket, onEnd: (requests: ConnectionRequests) => void) {
    this.#socket = socket;
    this.#onEnd = onEnd;
  }

  get canStart(): boolean {
    return this.#waiting.length > 0 && this.#inFlight < MAX_IN_FLIGHT && !this.#socket.destroyed;
  }

  wait(start: () => void): void {
    this.#waiting.push(start);
    this.#pauseOrResume();
  }

  startNext(): void {
    if (this.canStart) {
      this.#waiting.shift()?.();
      this.#pauseOrResume();
    }
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

  #pauseOrResume(): void {
    const isFull = this.#waiting.length > 0 || this.#inFlight >= MAX_IN_FLIGHT;
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

/**
 * Limits the requests that connections send without waiting for responses (HTTP pipelining).
 * One chunk of a socket has hundreds of them. They start in turn with those of other connections, some in each turn of the event loop.
 */
export class PipelinedRequests {
  readonly #connections = new WeakMap<Socket, ConnectionRequests>();
  /** The connections whose next request can start, in the order of their turns. */
  readonly #ready = new Set<ConnectionRequests>();
  #isScheduled = false;

  /** Calls `start` after the waiting requests of its connection, unless the connection ends. */
  wait(socket: Socket, start: () => void): void {
    const requests = this.#of(socket);
    requests.wait(start);
    this.#schedule(requests);
  }

  /** Counts a request that has no response yet. */
  begin(socket: Socket): Pick<ConnectionRequests, "end"> {
    const requests = this.#of(socket);
    requests.begin();
    return requests;
  }

  #of(socket: Socket): ConnectionRequests {
    let requests = this.#connections.get(socket);
    if (requests === undefined) {
      requests = new ConnectionRequests(socket, (ended) => this.#schedule(ended));
      this.#connections.set(socket, requests);
    }
    return requests;
  }

  #schedule(requests: ConnectionRequests): void {
    if (requests.canStart) {
      this.#ready.add(requests);
    }
    if (this.#ready.size > 0 && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(this.#startSome);
    }
  }

  readonly #startSome = (): void => {
    const endMs = performance.now() + TURN_MS;
    for (const requests of this.#ready) {
      this.#ready.delete(requests);
      requests.startNext();
      if (requests.canStart) {
        // The loop visits it again, after the others.
        this.#ready.add(requests);
      }
      if (performance.now() >= endMs) {
        break;
      }
    }
    this.#isScheduled = false;
    const [next] = this.#ready;
    if (next !== undefined) {
      this.#schedule(next);
    }
  };
}
