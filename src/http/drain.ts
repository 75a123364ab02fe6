import type { HttpServer } from "./httpServer.ts";

export interface DrainOptions {
  readonly server: HttpServer;
  /** How long load balancers get to see /readyz and to send their traffic elsewhere. */
  delay(): Promise<unknown>;
  /** How long requests in flight may take after that. */
  readonly timeoutMs: number;
  /** Makes /readyz say 503. */
  markUnready(): void;
}

/**
 * Unready at once; everything is still answered, with `Connection: close`, until `delay` is over; then the listener
 * closes and requests in flight end. Resolves when nothing is left.
 */
export const drain = async ({ server, delay, timeoutMs, markUnready }: DrainOptions): Promise<void> => {
  markUnready();
  server.startDraining();
  await delay();
  await server.close(timeoutMs);
};
