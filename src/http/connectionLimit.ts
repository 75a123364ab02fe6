import type { Server } from "node:http";
import type { Socket } from "node:net";
import { clientOfAddress } from "../access/clientAddress.ts";
import { LocalPlaces, type Places } from "../limits/places.ts";

export interface ConnectionLimitOptions {
  /** Maximum of open connections of one client address. */
  readonly maxPerAddress: number;
  /** Default: those of this process alone. */
  readonly places?: Places | undefined;
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
  readonly #places: Places;
  readonly #refused = new WeakSet<Socket>();
  #refusedCount = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
    this.#places = options.places ?? new LocalPlaces();
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
    const name = `connections of ${clientOfAddress(remote)}`;
    const full = this.#places.take([{ name, max: this.#options.maxPerAddress }]);
    if (full instanceof Promise) {
      // The connection is served until the main process has counted it.
      full.then(
        (known) => this.#onCounted(socket, name, known),
        () => undefined,
      );
    } else {
      this.#onCounted(socket, name, full);
    }
  }

  #onCounted(socket: Socket, name: string, full: string | undefined): void {
    if (full !== undefined) {
      this.#refuse(socket);
    } else if (socket.destroyed) {
      this.#places.release([name]);
    } else {
      socket.once("close", () => this.#places.release([name]));
    }
  }

  #refuse(socket: Socket): void {
    this.#options.onRefused();
    if (socket.destroyed) {
      return;
    }
    this.#refused.add(socket);
    this.#refusedCount++;
    const timer = setTimeout(() => socket.destroy(), REFUSED_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#refusedCount--;
    });
  }
}
