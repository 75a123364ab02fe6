import type { Socket } from "node:net";
import { TurnClock } from "../jsonrpc/turnClock.ts";
import { ConnectionRequests } from "./connectionRequests.ts";

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
