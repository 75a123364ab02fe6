import { setTimeout as wait } from "node:timers/promises";
import type { HttpServer } from "./http.ts";

export interface DrainOptions {
  readonly server: HttpServer;
  /** How long load balancers get to see /readyz and to send their traffic elsewhere. */
  readonly delayMs: number;
  /** How long requests in flight may take after that. */
  readonly timeoutMs: number;
  /** Makes /readyz say 503. */
  markUnready(): void;
}

/**
 * Unready at once; everything is still answered, with `Connection: close`, until `delayMs` have passed; then the listener
 * closes and requests in flight end. Resolves when nothing is left.
 */
export const drain = async ({ server, delayMs, timeoutMs, markUnready }: DrainOptions): Promise<void> => {
  markUnready();
  server.startDraining();
  await wait(delayMs);
  await server.close(timeoutMs);
};
