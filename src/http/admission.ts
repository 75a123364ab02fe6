import type { IncomingMessage, Server } from "node:http";
import { type AuthenticatedRequest, allowEveryone } from "../access/accessControl.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { Places } from "../limits/places.ts";
import type { Metrics } from "../telemetry/telemetry.ts";
import { ConnectionLimit } from "./connectionLimit.ts";

export interface AdmissionOptions {
  /** Maximum of connections of one client address. */
  readonly maxConnectionsPerAddress: number;
  /** Counts the connections. Default: those of this process alone. */
  readonly places?: Places | undefined;
  /** Whether connections from this address are those of many clients. Default: none is. */
  isTrustedProxy?(address: string): boolean;
  /** Authenticates a request. Throws or rejects with RpcError if the client may call nothing. Default: anybody may call everything. */
  admit?(request: IncomingMessage, isChainPath: (path: string) => boolean): Awaitable<AuthenticatedRequest>;
  isChainPath(path: string): boolean;
  onError(error: unknown, requestId: string): void;
  readonly metrics: Pick<Metrics, "accessRefused">;
}

/** Decides which requests may be routed: by their connection, then by their key. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #connectionLimit: ConnectionLimit;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#connectionLimit = new ConnectionLimit({
      maxPerAddress: options.maxConnectionsPerAddress,
      places: options.places,
      isTrustedProxy: (address) => options.isTrustedProxy?.(address) === true,
      onRefused: () => options.metrics.accessRefused.inc({ reason: "connections" }),
    });
  }

  /** Counts the connections of a server. */
  watch(server: Server): void {
    this.#connectionLimit.watch(server);
  }

  /** Returns the error of a client that is not admitted. */
  admit(request: IncomingMessage): Awaitable<AuthenticatedRequest | RpcError> {
    const { admit = allowEveryone, maxConnectionsPerAddress, isChainPath } = this.#options;
    if (this.#connectionLimit.isRefused(request.socket)) {
      const message = `too many connections: at most ${maxConnectionsPerAddress} from one address`;
      return new RpcError(CODES.RATE_LIMITED, message, { status: 429, retryAfterSeconds: 1 });
    }
    try {
      const admitted = admit(request, isChainPath);
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
    this.#options.onError(error, "authentication");
    return new RpcError(CODES.INTERNAL, "Internal error");
  }
}
