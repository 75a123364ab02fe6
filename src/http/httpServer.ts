import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import { type AuthenticatedCaller, type ClientRequest, findChainRefusal, needsKey } from "../access/access.ts";
import { listen } from "../core/listen.ts";
import { type Awaitable, whenKnown } from "../jsonrpc/call.ts";
import { invalidRequest, RpcError } from "../jsonrpc/rpcError.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { Admission, type AdmissionOptions } from "./admission.ts";
import { DirectRequests } from "./directRequests.ts";
import { LastConnections } from "./drain.ts";
import type { Endpoint, PassThrough } from "./endpoint.ts";
import { REQUEST_TIMEOUT_MS } from "./httpRequest.ts";
import { HttpTelemetry } from "./httpTelemetry.ts";
import { JsonRpcHandler, type JsonRpcHandlerOptions, type PassedRequest } from "./jsonRpcHandler.ts";
import { NewestResponses } from "./pipelinedRequests.ts";
import { createCors, isOurs, PlainResponses, type PlainResponsesOptions } from "./plainResponses.ts";
import { type Admitted, createRouter, type Route } from "./router.ts";
import { Upgrades } from "./upgrades.ts";

/** An import of node:http would also load Node's own fetch and WebSocket: 11 MB and 30 ms of each start. */
const { createServer } = process.getBuiltinModule("node:http");

export interface HttpServerOptions
  extends Omit<JsonRpcHandlerOptions, "commonHeaders">,
    Omit<AdmissionOptions, "isChainPath">,
    Pick<PlainResponsesOptions, "about" | "page" | "status"> {
  /** Endpoints by path, without a trailing slash: `/` for a single chain, else `/<name>` and `/<chainId>`. */
  readonly routes: ReadonlyMap<string, Endpoint>;
  readonly host: string;
  readonly port: number;
  /** Whether other processes may listen on the port too. Default: no. */
  readonly reusePort?: boolean;
  readonly keepAliveMs: number;
  readonly corsOrigins: "*" | readonly string[];
  /** Answers GET with the readiness, without a key. */
  readonly healthPath?: string | undefined;
  /** Whether new requests should be sent here. */
  isReady?(): boolean;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** A connection without traffic ends after this time. Longer than any upstream timeout: only dead readers reach it. */
const SOCKET_IDLE_MS = 120_000;
const TCP_KEEP_ALIVE_MS = 30_000;
/** An open connection may still send a request for this time after the listener is closed. */
const IDLE_LINGER_MS = 1_000;

const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

const followsCalls = (): RpcError => invalidRequest("an upgrade must wait for the responses of its connection", 400);

/** The HTTP server of the process. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #jsonRpc: JsonRpcHandler;
  readonly #plain: PlainResponses;
  readonly #server: Server;
  readonly #admission: Admission;
  readonly #upgrades: Upgrades;
  readonly #responses = new NewestResponses();
  readonly #lastConnections: LastConnections;
  readonly #direct: DirectRequests;
  #route: (target: string) => Route;
  #routes: HttpServerOptions["routes"];
  #isDraining = false;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const telemetry = new HttpTelemetry(options.telemetry);
    this.#routes = options.routes;
    this.#route = createRouter(options.routes);
    this.#admission = new Admission({ ...options, isChainPath: (path) => this.#routes.has(path) }, telemetry);
    const cors = createCors(options.corsOrigins);
    const commonHeaders = (request: IncomingMessage): readonly string[] => {
      const common = cors.headers(request.headers.origin);
      // Node writes no response behind the one that closes the connection.
      const isLast = this.#isDraining && this.#responses.isNewest(request);
      return isLast ? [...common, "Connection", "close"] : common;
    };
    this.#jsonRpc = new JsonRpcHandler({ ...options, commonHeaders }, telemetry);
    this.#direct = new DirectRequests(
      {
        ...{ maxBodyBytes: options.maxBodyBytes, memory: options.memory, jsonRpc: this.#jsonRpc },
        admit: (request) => this.#admit(request),
      },
      telemetry,
    );
    this.#plain = new PlainResponses({ ...options, commonHeaders, cors }, telemetry);
    this.#upgrades = new Upgrades({
      admit: (request) => this.#admit(request),
      nextRequestId: (headers) => this.#jsonRpc.nextRequestId(headers),
    });
    this.#server = createServer(
      {
        keepAliveTimeout: options.keepAliveMs,
        requestTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: REQUEST_TIMEOUT_MS,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
        // Some clients offer `Upgrade: h2c` with every POST. Such a request is answered like any other.
        // The responses of earlier requests must not follow inside an upgraded stream.
        shouldUpgradeCallback: (request) => isWebSocket(request) && this.#responses.areWritten(request.socket),
      },
      (request, response) => {
        this.#responses.add(response);
        if (isWebSocket(request)) {
          response.shouldKeepAlive = false;
          this.#jsonRpc.reject(followsCalls(), request, response);
        } else {
          this.#lastConnections.handle(() => this.#onRequest(request, response));
        }
      },
    );
    this.#lastConnections = new LastConnections(this.#server);
    this.#server.timeout = SOCKET_IDLE_MS;
    this.#admission.watch(this.#server);
    this.#server.on("upgrade", (request, socket, head) => this.#upgrades.handle(request, socket, head));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.port;
  }

  /** Starts a server. Resolves when it accepts connections. `port` 0 selects a free port. */
  static async listen(options: HttpServerOptions): Promise<HttpServer> {
    const server = new HttpServer(options);
    const { host, port, reusePort = false } = options;
    await listen(server.#server, {
      host,
      port,
      reusePort,
      setting: "server.host and server.port, or --host and --port",
    });
    return server;
  }

  /** The endpoint of exactly this path. Undefined if no chain has it. */
  endpointOf(path: string): Endpoint | undefined {
    return this.#routes.get(path);
  }

  /** Answers a JSON-RPC request of this process as one from 127.0.0.1. Needs no port. Rejects as DirectRequests do. */
  fetch(request: Request): Promise<Response> {
    return this.#direct.fetch(request);
  }

  /** Replaces the routes for new requests. Requests in flight finish at their old endpoint. */
  setRoutes(routes: HttpServerOptions["routes"]): void {
    this.#routes = routes;
    this.#route = createRouter(routes);
  }

  /** Adds `Connection: close` to every response from now on, so that clients connect to another replica. */
  startDraining(): void {
    this.#isDraining = true;
  }

  /**
   * Stops listening and waits for requests in flight. Closes their connections after `timeoutMs`.
   * The owner of an endpoint closes its WebSockets.
   */
  async close(timeoutMs: number): Promise<void> {
    const closed = Promise.withResolvers<void>();
    const stopListening = (): void => {
      NetServer.prototype.close.call(this.#server, () => closed.resolve());
    };
    if (timeoutMs > 0) {
      await this.#lastConnections.closeQuietly(stopListening);
    } else {
      stopListening();
    }
    // http.Server's own `close` ends idle connections at once, and loses the requests that are being sent on them.
    // An immediate: requests that have arrived are read before.
    const closeIdle = (): unknown => setImmediate(() => this.#server.close());
    const idle = setTimeout(closeIdle, Math.min(IDLE_LINGER_MS, timeoutMs));
    const all = setTimeout(() => this.#server.closeAllConnections(), timeoutMs);
    await closed.promise;
    clearTimeout(idle);
    clearTimeout(all);
    this.#server.close();
    this.#direct.close();
  }

  /** Returns the error of a client that is not admitted, or whose key may not use the chain. */
  #admit(request: ClientRequest): Awaitable<Admitted | RpcError> {
    return whenKnown(this.#admission.admit(request), this.#addRoute);
  }

  readonly #addRoute = (caller: AuthenticatedCaller | RpcError): Admitted | RpcError => {
    if (caller instanceof RpcError) {
      return caller;
    }
    const route = this.#route(caller.target);
    return findChainRefusal(caller, route.chain) ?? { caller, route };
  };

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { method } = request;
    if (method !== "POST" && this.#isHealthCheck(request)) {
      this.#plain.sendHealth(!this.#isDraining && this.#options.isReady?.() !== false, request, response);
      return;
    }
    const admitted = this.#admit(request);
    if (!(admitted instanceof Promise)) {
      this.#onAdmitted(admitted, request, response);
      return;
    }
    void admitted.then((known) => {
      // A client that disconnected in the meantime gets no response.
      if (!response.destroyed) {
        this.#onAdmitted(known, request, response);
      }
    });
  }

  #onAdmitted(admitted: Admitted | RpcError, request: IncomingMessage, response: ServerResponse): void {
    if (admitted instanceof RpcError) {
      this.#onRejected(admitted, request, response);
      return;
    }
    const { caller, route } = admitted;
    const { method } = request;
    const { endpoint, passthrough } = route;
    if (method === "TRACE") {
      this.#plain.rejectTrace(route, request, response);
    } else if (method === "POST" && endpoint !== undefined) {
      this.#jsonRpc.handle(endpoint, request, response, caller);
    } else if (method !== "POST" && this.#plain.servePage(route.path, request, response)) {
      return;
    } else if (method === "OPTIONS" && isOurs(route)) {
      this.#plain.sendPreflight(route, request, response);
    } else if (passthrough !== undefined && caller.payments !== undefined) {
      this.#jsonRpc.reject(needsKey(), request, response);
    } else if (passthrough !== undefined) {
      this.#passThrough(passthrough, route, { request, response, admitted: caller });
    } else {
      this.#plain.rejectPath(route, this.#routes.keys(), request, response);
    }
  }

  #passThrough(
    passthrough: PassThrough,
    { chain = "", target }: Route,
    client: Omit<PassedRequest, "chain" | "pass">,
  ): void {
    const { request, response, admitted } = client;
    const pass = (body: Buffer | undefined): void => {
      request.url = target;
      admitted.removeKey?.(request);
      response.shouldKeepAlive &&= !this.#isDraining;
      passthrough.web(request, response, body);
    };
    this.#jsonRpc.passThrough({ ...client, chain, pass });
  }

  #isHealthCheck({ method, url }: IncomingMessage): boolean {
    const { healthPath } = this.#options;
    return healthPath !== undefined && (method === "GET" || method === "HEAD") && url?.split("?", 1)[0] === healthPath;
  }

  /** A CORS preflight carries no key and needs none. It never reaches a target of pass-through. */
  #onRejected(error: RpcError, request: IncomingMessage, response: ServerResponse): void {
    if (request.method === "OPTIONS" && error.status === 401) {
      this.#plain.sendPreflight(this.#route(request.url ?? "/"), request, response);
    } else {
      this.#jsonRpc.reject(error, request, response);
    }
  }
}
