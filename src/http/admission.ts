import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type AuthenticatedCaller, allowEveryone, type ClientRequest } from "../access/access.ts";
import { clientOfAddress } from "../access/clientAddress.ts";
import type { Awaitable } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { Places } from "../limits/places.ts";
import type { HttpTelemetry } from "./httpTelemetry.ts";

/** Time to return an error on a connection above the limit. */
const REFUSED_MS = 2_000;

export interface AdmissionOptions {
  /** Maximum of connections of one client address. */
  readonly maxConnectionsPerAddress: number;
  /** Whether connections from this address are not counted: a proxy has those of many clients. Default: all are counted. */
  isTrustedProxy?(address: string): boolean;
  /** Authenticates a request. Throws or rejects with RpcError if the client may call nothing. Default: anybody may call everything. */
  authenticate?(request: ClientRequest, isChainPath: (path: string) => boolean): Awaitable<AuthenticatedCaller>;
  isChainPath(path: string): boolean;
}

/**
 * Decides which requests may be routed: by their connection, then by their key.
 * It counts the connections by client address. A connection above the limit may read one error.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #telemetry: HttpTelemetry;
  readonly #places = new Places();
  readonly #refused = new WeakSet<object>();
  #refusedCount = 0;

  constructor(options: AdmissionOptions, telemetry: HttpTelemetry) {
    this.#options = options;
    this.#telemetry = telemetry;
  }

  /** Counts the connections of a server. */
  watch(server: Server): void {
    server.on("connection", (socket: Socket) => this.#onConnection(socket));
  }

  /** Returns the error of a client that is not admitted. */
  admit(request: ClientRequest): Awaitable<AuthenticatedCaller | RpcError> {
    const { authenticate = allowEveryone, maxConnectionsPerAddress, isChainPath } = this.#options;
    if (this.#refusedCount > 0 && this.#refused.has(request.socket)) {
      const message = `too many connections: at most ${maxConnectionsPerAddress} from one address`;
      return new RpcError(CODES.RATE_LIMITED, message, { status: 429, retryAfterSeconds: 1 });
    }
    try {
      const admitted = authenticate(request, isChainPath);
      return admitted instanceof Promise ? admitted.catch((error: unknown) => this.#toRejection(error)) : admitted;
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      return error;
    }
  }

  /** Any other error than RpcError is a fault of forebay. */
  #toRejection(error: unknown): RpcError {
    if (error instanceof RpcError) {
      return error;
    }
    this.#telemetry.logBroken(error, "authentication");
    return new RpcError(CODES.INTERNAL, "Internal error");
  }

  #onConnection(socket: Socket): void {
    const { maxConnectionsPerAddress: max, isTrustedProxy } = this.#options;
    const remote = socket.remoteAddress;
    if (remote === undefined || isTrustedProxy?.(remote) === true) {
      return;
    }
    const name = `connections of ${clientOfAddress(remote)}`;
    if (this.#places.take([{ name, max }]) !== undefined) {
      this.#refuse(socket);
    } else {
      socket.once("close", () => this.#places.release([name]));
    }
  }

  #refuse(socket: Socket): void {
    this.#telemetry.metrics.accessRefused.inc({ reason: "connections" });
    this.#refused.add(socket);
    this.#refusedCount++;
    const timer = setTimeout(() => socket.destroy(), REFUSED_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#refusedCount--;
    });
  }
}
