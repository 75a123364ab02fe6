import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, the next ones wait. */
const MAX_IN_FLIGHT = 16;

/** The requests of one connection that have no response. */
class ConnectionRequests {
  readonly #socket: Socket;
  readonly #waiting: (() => void)[] = [];
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
  }

  end(): void {
    this.#inFlight--;
    this.#handleWaiting();
  }

  /** Handles a request now, or when fewer are in flight. While a request waits, no more are read. */
  handle(handle: () => void): void {
    this.#waiting.push(handle);
    this.#handleWaiting();
    if (this.#waiting.length > 0 && !this.#isPaused) {
      this.#isPaused = true;
      this.#socket.on("resume", this.#pauseAgain);
      this.#socket.pause();
    }
  }

  #handleWaiting(): void {
    while (this.#inFlight < MAX_IN_FLIGHT) {
      const handle = this.#waiting.shift();
      if (handle === undefined) {
        break;
      }
      // The requests of a closed connection have no reader.
      if (!this.#socket.destroyed) {
        handle();
      }
    }
    if (this.#isPaused && this.#waiting.length === 0) {
      // The end of a connection must not be read before its responses are written, which is at the end of this turn.
      setImmediate(() => this.#resume());
    }
  }

  #resume(): void {
    if (this.#isPaused && this.#waiting.length === 0) {
      this.#isPaused = false;
      this.#socket.off("resume", this.#pauseAgain);
      this.#socket.resume();
    }
  }
}

/** Limits the requests that connections send without waiting for responses (HTTP pipelining). */
export class PipelinedRequests {
  readonly #connections = new WeakMap<Socket, ConnectionRequests>();

  /** Counts a request that has no response yet. */
  begin(socket: Socket): Pick<ConnectionRequests, "end"> {
    const requests = this.#of(socket);
    requests.begin();
    return requests;
  }

  /** Handles a request behind others of its connection: now, or when the connection has fewer in flight. */
  handle(socket: Socket, handle: () => void): void {
    this.#of(socket).handle(handle);
  }

  #of(socket: Socket): ConnectionRequests {
    let requests = this.#connections.get(socket);
    if (requests === undefined) {
      requests = new ConnectionRequests(socket);
      this.#connections.set(socket, requests);
    }
    return requests;
  }
}

/** The response to the newest request of each connection, until it is written. Responses are written in the order of their requests. */
export class NewestResponses {
  readonly #newest = new WeakMap<Socket, ServerResponse>();

  add(response: ServerResponse): void {
    const { socket } = response.req;
    this.#newest.set(socket, response);
    // A connection without requests must not hold the last one.
    response.once("close", () => {
      if (this.#newest.get(socket) === response) {
        this.#newest.delete(socket);
      }
    });
  }

  /** Whether no later request of its connection has been read. */
  isNewest(request: IncomingMessage): boolean {
    return this.#newest.get(request.socket)?.req === request;
  }

  /** Whether all responses of the connection are written. */
  areWritten(socket: Socket): boolean {
    return !this.#newest.has(socket);
  }
}
