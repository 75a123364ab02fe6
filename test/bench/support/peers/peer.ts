import type { Server } from "../compareServers.ts";

/** A proxy that the bench compares, and forebay itself. */
export interface Peer {
  readonly name: string;
  /** nginx and the floor forward every request. */
  readonly caches: boolean;
  readonly version: string;
  /** Starts it in front of one node, or of two. Resolves with its first answer. */
  start(nodePorts: readonly number[]): Promise<Server>;
}
