import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TurnClock } from "../jsonrpc/turnClock.ts";

/** Requests of one connection in flight at a time, as with WebSockets. At this number, the next ones wait. */
const MAX_IN_FLIGHT = 16;

/** The requests of one connection that have no response. */
class ConnectionRequests {
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

/** Pipelined requests that are handled in one turn of the event loop. The calls of other clients have the rest of the turn. */
const MAX_IN_TURN = 8;

/**
 * Limits the requests that connections send without waiting for responses (HTTP pipelining).
 * One chunk of a socket contains hundreds of small requests. Some of them are handled in each turn of the event loop, in turn with
 * those of other connections.
 */
export class PipelinedRequests {
  readonly #connections = new WeakMap<Socket, ConnectionRequests>();
  /** The connections whose next request can be handled, in the order of their turns. */
  readonly #ready = new Set<ConnectionRequests>();
  #handledInTurn = 0;
  #hasNextTurn = false;
  readonly #clock = new TurnClock();

  /** Counts a request that has no response yet. */
  begin(socket: Socket): Pick<ConnectionRequests, "end"> {
    const requests = this.#of(socket);
    requests.begin();
    return requests;
  }

  /** Handles a request behind others of its connection: now, or in a later turn if this turn or the connection has enough. */
  handle(socket: Socket, handle: () => void): void {
    const requests = this.#of(socket);
    if (!this.#isTurnOver && !requests.isWaiting && requests.canHandle) {
      this.#handledInTurn++;
      this.#planTurn();
      handle();
    } else {
      requests.wait(handle);
      this.#enter(requests);
    }
  }

  get #isTurnOver(): boolean {
    return this.#handledInTurn === MAX_IN_TURN || this.#clock.isOver;
  }

  #of(socket: Socket): ConnectionRequests {
    let requests = this.#connections.get(socket);
    if (requests === undefined) {
      requests = new ConnectionRequests(socket, (ended) => this.#enter(ended));
      this.#connections.set(socket, requests);
    }
    return requests;
  }

  #enter(requests: ConnectionRequests): void {
    if (requests.isWaiting && requests.canHandle) {
      this.#ready.add(requests);
      this.#planTurn();
    }
  }

  #planTurn(): void {
    if (!this.#hasNextTurn) {
      this.#hasNextTurn = true;
      setImmediate(this.#runTurn);
    }
  }

  readonly #runTurn = (): void => {
    this.#hasNextTurn = false;
    this.#handledInTurn = 0;
    // An entry that is added again comes after the others.
    for (const requests of this.#ready) {
      if (this.#isTurnOver) {
        break;
      }
      this.#ready.delete(requests);
      this.#handledInTurn++;
      requests.handleNext();
      this.#enter(requests);
      if (!requests.isWaiting) {
        // The end of a connection must not be read before its responses are written, which is at the end of this turn.
        setImmediate(() => requests.endTurn());
      }
    }
    if (this.#handledInTurn > 0 || this.#ready.size > 0) {
      this.#planTurn();
    }
  };
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
