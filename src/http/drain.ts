import type { Server } from "node:net";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";

interface DrainOptions {
  readonly server: { startDraining(): void; close(timeoutMs: number): Promise<void> };
  /** Waits until load balancers have seen /readyz and send their traffic elsewhere. */
  delay(): Promise<unknown>;
  /** Limit for requests in flight after the delay. */
  readonly timeoutMs: number;
  /** Makes /readyz return 503. */
  markUnready(): void;
}

/**
 * Drains the server. /readyz fails at once. Responses carry `Connection: close` during `delay`. Then the listener closes.
 * Resolves when no request is in flight.
 */
export const drain = async ({ server, delay, timeoutMs, markUnready }: DrainOptions): Promise<void> => {
  markUnready();
  server.startDraining();
  await delay();
  await server.close(timeoutMs);
};

/** A listener without a new connection for this time is quiet. */
const QUIET_MS = 50;
/** After this time, one turn without a new connection is enough. */
const BUSY_MS = 300;
/** After this time, the listener is closed in any case. */
const MAX_MS = 1_000;
const TURN_MS = 1;

/**
 * Closes a listener without losing connections. The kernel resets those that wait to be accepted, and each turn of the event loop
 * accepts one. Clients that connect again after each response would always have some: so requests are held until the listener is quiet.
 */
export class LastConnections {
  readonly #server: Server;
  #held: (() => void)[] | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Handles a request: now, or after the listener is closed. */
  handle(handle: () => void): void {
    if (this.#held === undefined) {
      handle();
    } else {
      this.#held.push(handle);
    }
  }

  /** Calls `close` when no client is about to connect. Then handles the requests that were held. */
  async closeQuietly(close: () => void): Promise<void> {
    this.#held = [];
    await this.#untilQuiet();
    close();
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const handle of held) {
      handle();
    }
  }

  async #untilQuiet(): Promise<void> {
    // The turn that is under way may have accepted connections before.
    await nextTurn();
    const startMs = performance.now();
    let newestMs = startMs;
    const onConnection = (): void => {
      newestMs = performance.now();
    };
    this.#server.on("connection", onConnection);
    for (let isQuiet = false; !isQuiet; ) {
      const turnMs = performance.now();
      await nextTurn();
      const endMs = performance.now();
      if (endMs - startMs > MAX_MS) {
        break;
      }
      if (newestMs < turnMs) {
        isQuiet = endMs - newestMs > QUIET_MS || endMs - startMs > BUSY_MS;
        // No turn may come between this one and the end of the listener.
        await (isQuiet ? undefined : wait(TURN_MS));
      }
    }
    this.#server.off("connection", onConnection);
  }
}
