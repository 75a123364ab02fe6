import { randomBytes } from "node:crypto";
import type { WebSocket } from "ws";

const PING_BYTES = 8;

/** Finds out whether the client of a WebSocket still reads. */
export class Pings {
  readonly #socket: WebSocket;
  /** The data of the last ping. Undefined after its pong. */
  #sent: Buffer | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("pong", (data) => {
      // A client may send any pong at any time (RFC 6455, section 5.5.3). That one shows that it has read the ping.
      if (this.#sent?.equals(data) === true) {
        this.#sent = undefined;
      }
    });
  }

  /** Sends a ping. Terminates the connection if it did not answer the last one. */
  send(): void {
    // While reading is paused, the pong cannot be read. A client that reads nothing is closed by the send queue.
    if (this.#socket.isPaused) {
      return;
    }
    if (this.#sent !== undefined) {
      this.#socket.terminate();
    }
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#sent = randomBytes(PING_BYTES);
      this.#socket.ping(this.#sent);
    }
  }
}
