import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { type AuthenticatedRequest, allowEveryone } from "../access/accessControl.ts";
import { listen } from "../core/listen.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import { type Cors, createCors } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import { createInfoPages, type InfoPages, type InfoPagesOptions, PLAIN } from "./infoPages.ts";
import { createJsonRpcHandler, type JsonRpcHandler, type JsonRpcHandlerOptions } from "./jsonRpcHandler.ts";
import { createRouter, type Route } from "./router.ts";

export interface HttpServerOptions
  extends Omit<JsonRpcHandlerOptions, "commonHeaders">,
    Pick<InfoPagesOptions, "about" | "page" | "status"> {
  /** Endpoints by path, without a trailing slash: `/` for a single chain, else `/<name>` and `/<chainId>`. */
  readonly routes: ReadonlyMap<string, Endpoint>;
  readonly host: string;
  readonly port: number;
  readonly keepAliveMs: number;
  readonly corsOrigins: "*" | readonly string[];
  /** Authenticates a request. Throws RpcError if the client may call nothing. Default: anybody may call everything. */
  admit?(request: IncomingMessage): AuthenticatedRequest;
}

export interface HttpServer {
  readonly port: number;
  /** Replaces the routes for new requests. Requests in flight finish at their old endpoint. */
  setRoutes(routes: HttpServerOptions["routes"]): void;
  /** Adds `Connection: close` to every response from now on, so that clients connect to another replica. */
  startDraining(): void;
  /**
   * Stops listening and waits for requests in flight. Closes their connections after `timeoutMs`.
   * The owner of an endpoint closes its WebSockets.
   */
  close(timeoutMs: number): Promise<void>;
}

/** Limit for receiving a whole request with its body, so that a slow sender does not hold a connection forever. */
const REQUEST_TIMEOUT_MS = 60_000;
const HEADERS_TIMEOUT_MS = 20_000;
/** A connection without traffic ends after this time. Longer than any upstream timeout: only dead readers reach it. */
const SOCKET_IDLE_MS = 120_000;
const TCP_KEEP_ALIVE_MS = 30_000;
/** An open connection may still send a request for this time after the listener is closed. */
const IDLE_LINGER_MS = 1_000;

const endUpgrade = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

/** `/` belongs to forebay even without an endpoint: with several chains it has only the info page. */
const isOurs = ({ path, endpoint }: Route): boolean => endpoint !== undefined || path === "/";

const allowedMethods = ({ path, endpoint }: Route): string =>
  [endpoint && "POST", path === "/" && "GET, HEAD", "OPTIONS"].filter(Boolean).join(", ");

class RoutedServer {
  readonly #options: HttpServerOptions;
  readonly #cors: Cors;
  readonly #jsonRpc: JsonRpcHandler;
  readonly #pages: InfoPages;
  readonly #server: Server;
  /** Upgraded connections that are passed through. */
  readonly #upgraded = new Set<Duplex>();
  #route: (target: string) => Route;
  /** Paths of all chains, for the text of a 404. */
  #paths: string;
  #isDraining = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#route = createRouter(options.routes);
    this.#paths = [...options.routes.keys()].join(", ");
    this.#cors = createCors(options.corsOrigins);
    const commonHeaders = ({ headers }: IncomingMessage): readonly string[] => {
      const common = this.#cors.headers(headers.origin);
      return this.#isDraining ? [...common, "Connection", "close"] : common;
    };
    this.#jsonRpc = createJsonRpcHandler({ ...options, commonHeaders });
    this.#pages = createInfoPages({ ...options, commonHeaders });
    this.#server = createServer(
      {
        keepAliveTimeout: options.keepAliveMs,
        requestTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
        // Some clients offer `Upgrade: h2c` with every POST. Such a request is answered like any other.
        shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
      },
      (request, response) => this.#onRequest(request, response),
    );
    this.#server.timeout = SOCKET_IDLE_MS;
    this.#server.on("upgrade", (request, socket, head) => this.#onUpgrade(request, socket, head));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.port;
  }

  /** Resolves when the server accepts connections. */
  async listen(): Promise<void> {
    const { host, port } = this.#options;
    await listen(this.#server, { host, port, setting: "server.host and server.port, or --host and --port" });
  }

  setRoutes(routes: HttpServerOptions["routes"]): void {
    this.#route = createRouter(routes);
    this.#paths = [...routes.keys()].join(", ");
  }

  startDraining(): void {
    this.#isDraining = true;
  }

  async close(timeoutMs: number): Promise<void> {
    // Closing the listener resets connections that wait to be accepted. One turn of the event loop accepts them.
    await new Promise((resolve) => setImmediate(resolve));
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(this.#server, () => resolve()));
    for (const socket of this.#upgraded) {
      socket.destroy();
    }
    // http.Server's own `close` ends idle connections at once, and loses the requests that are being sent on them.
    const idle = setTimeout(() => this.#server.close(), Math.min(IDLE_LINGER_MS, timeoutMs));
    const all = setTimeout(() => this.#server.closeAllConnections(), timeoutMs);
    await closed;
    clearTimeout(idle);
    clearTimeout(all);
    this.#server.close();
  }

  /** Returns the error of a client that is not admitted. A CORS preflight carries no key and needs none. */
  #admit(request: IncomingMessage): AuthenticatedRequest | RpcError {
    const { admit = allowEveryone } = this.#options;
    try {
      return admit(request);
    } catch (error) {
      if (!(error instanceof RpcError)) {
        throw error;
      }
      return request.method === "OPTIONS" ? allowEveryone(request) : error;
    }
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { method } = request;
    if (method !== "POST" && this.#pages.serve(this.#route(request.url ?? "/").path, request, response)) {
      return;
    }
    const admitted = this.#admit(request);
    if (admitted instanceof RpcError) {
      this.#jsonRpc.reject(admitted, request, response);
      return;
    }
    const routing = this.#route(admitted.target);
    const { endpoint, passthrough } = routing;
    if (method === "POST" && endpoint !== undefined) {
      this.#jsonRpc.handle(endpoint, request, response, admitted);
    } else if (method === "OPTIONS" && isOurs(routing)) {
      this.#answerPreflight(routing, request, response);
    } else if (passthrough !== undefined) {
      request.url = routing.target;
      passthrough.web(request, response);
    } else {
      this.#rejectRequest(routing, request, response);
    }
  }

  #answerPreflight(routing: Route, { headers }: IncomingMessage, response: ServerResponse): void {
    this.#options.metrics.httpResponses.inc({ status: 204 });
    response.writeHead(204, [...this.#cors.preflight(headers), "Allow", allowedMethods(routing)]).end();
  }

  #rejectRequest(routing: Route, request: IncomingMessage, response: ServerResponse): void {
    const isWrongMethod = routing.endpoint !== undefined || (routing.path === "/" && request.method !== "POST");
    this.#pages.send(
      request,
      response,
      isWrongMethod
        ? { status: 405, type: PLAIN, text: "JSON-RPC is sent by POST\n", allow: allowedMethods(routing) }
        : { status: 404, type: PLAIN, text: `nothing is served at this path; chains: ${this.#paths}\n` },
    );
  }

  #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Without a listener, a reset of the connection would end the process.
    socket.on("error", () => socket.destroy());
    const admitted = this.#admit(request);
    if (admitted instanceof RpcError) {
      endUpgrade(socket, "401 Unauthorized");
      return;
    }
    const { endpoint, passthrough, target } = this.#route(admitted.target);
    if (endpoint?.upgrade !== undefined) {
      endpoint.upgrade(request, socket, head, admitted);
    } else if (passthrough !== undefined) {
      this.#upgraded.add(socket);
      socket.once("close", () => this.#upgraded.delete(socket));
      request.url = target;
      passthrough.upgrade(request, socket, head);
    } else {
      endUpgrade(socket, "404 Not Found");
    }
  }
}

/** Starts the HTTP server. Resolves when it listens. `port` 0 selects a free port. */
export const createHttpServer = async (options: HttpServerOptions): Promise<HttpServer> => {
  const server = new RoutedServer(options);
  await server.listen();
  return {
    port: server.port,
    setRoutes: (routes) => server.setRoutes(routes),
    startDraining: () => server.startDraining(),
    close: (timeoutMs) => server.close(timeoutMs),
  };
};
