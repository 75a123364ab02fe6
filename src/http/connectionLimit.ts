import type { Server } from "node:http";
import type { Socket } from "node:net";
import { clientOfAddress } from "../access/clientAddress.ts";

export interface ConnectionLimitOptions {
  /** Maximum of open connections of one client address. */
  readonly maxPerAddress: number;
  /** Whether connections from this address are not counted: a proxy has those of many clients. */
  isTrustedProxy(address: string): boolean;
  /** Called with each connection above the limit. */
  onRefused(): void;
}

/** Time to return an error on a connection above the limit. */
const REFUSED_MS = 2_000;

/** Counts the connections of a server by client address. A connection above the limit may read one error. */
export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #counts = new Map<string, number>();
  readonly #refused = new WeakSet<Socket>();
  #refusedCount = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  watch(server: Server): void {
    server.on("connection", (socket: Socket) => this.#onConnection(socket));
  }

  /** Whether requests of this connection must be rejected. */
  isRefused(socket: Socket): boolean {
    return this.#refusedCount > 0 && this.#refused.has(socket);
  }

  #onConnection(socket: Socket): void {
    const remote = socket.remoteAddress;
    if (remote === undefined || this.#options.isTrustedProxy(remote)) {
      return;
    }
    const client = clientOfAddress(remote);
    const count = this.#counts.get(client) ?? 0;
    if (count >= this.#options.maxPerAddress) {
      this.#refuse(socket);
      return;
    }
    this.#counts.set(client, count + 1);
    socket.once("close", () => this.#release(client));
  }

  #release(client: string): void {
    const count = (this.#counts.get(client) ?? 1) - 1;
    if (count > 0) {
      this.#counts.set(client, count);
    } else {
      this.#counts.delete(client);
    }
  }

  #refuse(socket: Socket): void {
    this.#options.onRefused();
    this.#refused.add(socket);
    this.#refusedCount++;
    const timer = setTimeout(() => socket.destroy(), REFUSED_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#refusedCount--;
    });
  }
}
