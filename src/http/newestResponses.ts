import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The response to the newest request of each connection. Responses are written in the order of their requests. */
export class NewestResponses {
  readonly #newest = new WeakMap<Socket, ServerResponse>();

  add(response: ServerResponse): void {
    this.#newest.set(response.req.socket, response);
  }

  /** Whether no later request of its connection has been read. */
  isNewest(request: IncomingMessage): boolean {
    return this.#newest.get(request.socket)?.req === request;
  }

  /** Whether all responses of the connection are written. */
  areWritten(socket: Socket): boolean {
    return this.#newest.get(socket)?.writableFinished !== false;
  }
}
