import type { Socket } from "node:net";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, reading pauses until one has its response. */
const MAX_IN_FLIGHT = 64;

/** The requests of one connection in flight. */
class ConnectionRequests {
  readonly #socket: Socket;
  #inFlight = 0;
  #isPaused = false;
  /** The HTTP parser resumes the socket after each request. This event is emitted before more is read. */
  readonly #pauseAgain = (): void => {
    this.#socket.pause();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  begin(): void {
    this.#inFlight++;
    if (this.#inFlight >= MAX_IN_FLIGHT && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.on("resume", this.#pauseAgain);
      this.#socket.pause();
    }
  }

  end(): void {
    this.#inFlight--;
    if (this.#inFlight < MAX_IN_FLIGHT && this.#isPaused) {
      this.#isPaused = false;
      this.#socket.off("resume", this.#pauseAgain);
      this.#socket.resume();
    }
  }
}

/** Limits the requests that one connection sends without waiting for responses (HTTP pipelining). */
export class PipelineLimit {
  readonly #connections = new WeakMap<Socket, ConnectionRequests>();

  /** Counts a request that has no response yet. */
  begin(socket: Socket): ConnectionRequests {
    let requests = this.#connections.get(socket);
    if (requests === undefined) {
      requests = new ConnectionRequests(socket);
      this.#connections.set(socket, requests);
    }
    requests.begin();
    return requests;
  }
}
