import type { HttpServer } from "./httpServer.ts";

export interface DrainOptions {
  readonly server: Pick<HttpServer, "startDraining" | "close">;
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
