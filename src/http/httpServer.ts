import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { type AuthenticatedRequest, allowEveryone } from "../access/accessControl.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import { createCors } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import { createJsonRpcHandler, type JsonRpcHandlerOptions } from "./jsonRpcHandler.ts";
import { createRouter } from "./router.ts";

export interface HttpServerOptions extends Omit<JsonRpcHandlerOptions, "commonHeaders"> {
  /** By path without a trailing slash: `/` for a single chain, `/<name>` and `/<chainId>` for each. */
  readonly routes: ReadonlyMap<string, Endpoint>;
  readonly host: string;
  readonly port: number;
  readonly keepAliveMs: number;
  readonly corsOrigins: "*" | readonly string[];
  /** Who asks, and what he may; throws RpcError where he may nothing. Default: anyone everything. */
  admit?(request: IncomingMessage): AuthenticatedRequest;
  /** JSON text that `GET /` answers. */
  about(): string;
  /** HTML that `GET /` answers to a browser. */
  readonly page?: string | undefined;
  /** JSON text of `GET /status.json`, which the page draws. */
  status?(): Promise<string>;
}

export interface HttpServer {
  readonly port: number;
  /** From now on these are served; requests under way end where they began. */
  setRoutes(routes: HttpServerOptions["routes"]): void;
  /** From now on every answer asks for a new connection, so that clients go elsewhere. */
  startDraining(): void;
  /** Takes no new connections; requests in flight end, after `timeoutMs` by force. WebSockets of endpoints are closed by their owner. */
  close(timeoutMs: number): Promise<void>;
}

/** A whole request, body and all, must have come in this time: a slow sender does not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 60_000;
const HEADERS_TIMEOUT_MS = 20_000;
/** Neither side moved a byte: longer than any upstream timeout, so that it ends dead readers and nothing else. */
const SOCKET_IDLE_MS = 120_000;
const TCP_KEEP_ALIVE_MS = 30_000;
/** After the listener, how long an open connection may still bring a request. */
const IDLE_LINGER_MS = 1_000;

const PLAIN = "text/plain";
const HTML = "text/html";
const JSON_TYPE = "application/json";

const endUpgrade = (socket: Duplex, status: string): void => {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
};

/** `/` tells what this is, too; with several chains it does nothing else. */
const allowed = (path: string, endpoint: Endpoint | undefined): string =>
  [endpoint && "POST", path === "/" && "GET, HEAD", "OPTIONS"].filter(Boolean).join(", ");

export const createHttpServer = async (options: HttpServerOptions): Promise<HttpServer> => {
  const { metrics, admit = allowEveryone, page, status } = options;
  let route = createRouter(options.routes);
  const cors = createCors(options.corsOrigins);
  const upgraded = new Set<Duplex>();
  let draining = false;

  const commonHeaders = ({ headers }: IncomingMessage): readonly string[] => {
    const common = cors.headers(headers.origin);
    return draining ? [...common, "Connection", "close"] : common;
  };
  const post = createJsonRpcHandler({ ...options, commonHeaders });

  const plain = (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    type: string,
    text: string,
    allow?: string,
  ): void => {
    metrics.httpResponses.inc({ status });
    const headers = [
      "Content-Type",
      type === HTML ? `${HTML}; charset=utf-8` : type,
      "Content-Length",
      String(Buffer.byteLength(text)),
      ...commonHeaders(request),
    ];
    if (type === HTML) headers.push("Vary", "Accept");
    if (type !== PLAIN) headers.push("Cache-Control", "no-store");
    if (allow !== undefined) headers.push("Allow", allow);
    response.writeHead(status, headers).end(request.method === "HEAD" ? undefined : text);
  };

  /** What anybody may read: it holds nothing secret. */
  const sendPage = (path: string, request: IncomingMessage, response: ServerResponse): boolean => {
    if (request.method !== "GET" && request.method !== "HEAD") return false;
    if (path === "/") {
      const isBrowser = page !== undefined && request.headers.accept?.includes(HTML) === true;
      if (isBrowser) plain(request, response, 200, HTML, page);
      else plain(request, response, 200, JSON_TYPE, options.about());
      return true;
    }
    if (path !== "/status.json" || status === undefined) return false;
    status().then(
      (text) => plain(request, response, 200, JSON_TYPE, text),
      (error: unknown) => {
        options.onError(error, "status.json");
        plain(request, response, 500, PLAIN, "the status cannot be told\n");
      },
    );
    return true;
  };

  /** A preflight carries no key, and is answered without. */
  const admitted = (request: IncomingMessage): AuthenticatedRequest | RpcError => {
    try {
      return admit(request);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return request.method === "OPTIONS" ? allowEveryone(request) : error;
    }
  };

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { method } = request;
    if (method !== "POST" && sendPage(route(request.url ?? "/").path, request, response)) return;
    const asker = admitted(request);
    if (asker instanceof RpcError) {
      post.refuse(asker, request, response);
      return;
    }
    const { path, endpoint, passthrough, target } = route(asker.target);
    const ours = endpoint !== undefined || path === "/";
    if (method === "POST" && endpoint !== undefined) post(endpoint, request, response, asker);
    else if (method === "OPTIONS" && ours) {
      metrics.httpResponses.inc({ status: 204 });
      response.writeHead(204, [...cors.preflight(request.headers), "Allow", allowed(path, endpoint)]).end();
    } else if (passthrough !== undefined) {
      request.url = target;
      passthrough.web(request, response);
    } else if (ours && (endpoint !== undefined || method !== "POST"))
      plain(request, response, 405, PLAIN, "JSON-RPC is sent by POST\n", allowed(path, endpoint));
    else plain(request, response, 404, PLAIN, "nothing is served at this path\n");
  };

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Without a listener a reset of the connection would end the process.
    socket.on("error", () => socket.destroy());
    const asker = admitted(request);
    if (asker instanceof RpcError) {
      endUpgrade(socket, "401 Unauthorized");
      return;
    }
    const { endpoint, passthrough, target } = route(asker.target);
    if (endpoint?.upgrade !== undefined) endpoint.upgrade(request, socket, head, asker);
    else if (passthrough !== undefined) {
      upgraded.add(socket);
      socket.once("close", () => upgraded.delete(socket));
      request.url = target;
      passthrough.upgrade(request, socket, head);
    } else endUpgrade(socket, "404 Not Found");
  };

  const server = createServer(
    {
      keepAliveTimeout: options.keepAliveMs,
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      // Some clients offer `Upgrade: h2c` with every POST: that is no reason not to answer it.
      shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
    },
    onRequest,
  );
  server.timeout = SOCKET_IDLE_MS;
  server.on("upgrade", onUpgrade);
  server.listen(options.port, options.host);
  await once(server, "listening");
  const address = server.address();

  return {
    port: typeof address === "object" && address !== null ? address.port : options.port,
    setRoutes: (routes) => {
      route = createRouter(routes);
    },
    startDraining: () => {
      draining = true;
    },
    close: async (timeoutMs) => {
      // Who has connected by now is accepted first: a listener that closes resets the rest.
      await new Promise((resolve) => setImmediate(resolve));
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
      for (const socket of upgraded) socket.destroy();
      // http.Server's own `close` ends idle connections at once, with the requests that are on their way on them.
      const idle = setTimeout(() => server.close(() => {}), Math.min(IDLE_LINGER_MS, timeoutMs));
      const all = setTimeout(() => server.closeAllConnections(), timeoutMs);
      await closed;
      clearTimeout(idle);
      clearTimeout(all);
      server.close(() => {});
    },
  };
};
