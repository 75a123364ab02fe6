import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

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
