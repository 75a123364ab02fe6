import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createCors } from "./cors.ts";
import type { Endpoint } from "./endpoint.ts";
import { createPost, type PostOptions } from "./post.ts";
import { createRouting } from "./routing.ts";

export interface HttpServerOptions extends Omit<PostOptions, "commonHeaders"> {
  /** By path without a trailing slash: `/` for a single chain, `/<name>` and `/<chainId>` for each. */
  readonly routes: ReadonlyMap<string, Endpoint>;
  readonly host: string;
  readonly port: number;
  readonly keepAliveMs: number;
  readonly corsOrigins: "*" | readonly string[];
  /** JSON text that `GET /` answers. */
  about(): string;
}

export interface HttpServer {
  readonly port: number;
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

/** `/` tells what this is, too. */
const allowed = ({ url = "/" }: IncomingMessage): string =>
  /^\/?(?:\?|$)/.test(url) ? "POST, GET, HEAD, OPTIONS" : "POST, OPTIONS";

export const createHttpServer = async (options: HttpServerOptions): Promise<HttpServer> => {
  const { metrics } = options;
  const route = createRouting(options.routes);
  const cors = createCors(options.corsOrigins);
  const upgraded = new Set<Duplex>();
  let draining = false;

  const commonHeaders = ({ headers }: IncomingMessage): readonly string[] => {
    const common = cors.headers(headers.origin);
    return draining ? [...common, "Connection", "close"] : common;
  };
  const post = createPost({ ...options, commonHeaders });

  const plain = (
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    type: string,
    text: string,
  ): void => {
    metrics.httpResponses.inc({ status });
    const headers = [
      "Content-Type",
      type,
      "Content-Length",
      String(Buffer.byteLength(text)),
      ...commonHeaders(request),
    ];
    if (status === 405) headers.push("Allow", allowed(request));
    response.writeHead(status, headers).end(request.method === "HEAD" ? undefined : text);
  };

  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const { path, endpoint, passthrough, target } = route(request.url ?? "/");
    const { method } = request;
    const ours = endpoint !== undefined || path === "/";
    if (method === "POST" && endpoint !== undefined) post(endpoint, request, response);
    else if ((method === "GET" || method === "HEAD") && path === "/") {
      plain(request, response, 200, "application/json", options.about());
    } else if (method === "OPTIONS" && ours) {
      metrics.httpResponses.inc({ status: 204 });
      response.writeHead(204, [...cors.preflight(request.headers), "Allow", allowed(request)]).end();
    } else if (passthrough !== undefined) {
      request.url = target;
      passthrough.web(request, response);
    } else if (ours) plain(request, response, 405, "text/plain", "JSON-RPC is sent by POST\n");
    else plain(request, response, 404, "text/plain", "nothing is served at this path\n");
  };

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    // Without a listener a reset of the connection would end the process.
    socket.on("error", () => socket.destroy());
    const { endpoint, passthrough, target } = route(request.url ?? "/");
    if (endpoint?.upgrade !== undefined) endpoint.upgrade(request, socket, head);
    else if (passthrough !== undefined) {
      upgraded.add(socket);
      socket.once("close", () => upgraded.delete(socket));
      request.url = target;
      passthrough.upgrade(request, socket, head);
    } else socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
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
    startDraining: () => {
      draining = true;
    },
    close: async (timeoutMs) => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of upgraded) socket.destroy();
      const timer = setTimeout(() => server.closeAllConnections(), timeoutMs);
      await closed;
      clearTimeout(timer);
    },
  };
};
