import { createRequire } from "node:module";
import type { PassThrough } from "./endpoint.ts";

const require = createRequire(import.meta.url);
/** Loaded if pass-through is configured. */
const loadProxy = (): typeof import("http-proxy") => require("http-proxy");

const createAgent = (target: string) => {
  const { Agent } = process.getBuiltinModule(target.startsWith("https:") ? "node:https" : "node:http");
  return new Agent({ keepAlive: true });
};

export interface PassThroughOptions {
  readonly target: string;
  /** Limit for the time without a byte from the target. */
  readonly timeoutMs: number;
  /** Called if the target cannot be reached. The response does not contain its address. */
  onError(error: Error): void;
}

const BAD_GATEWAY = "the target of this path cannot be reached\n";
const BAD_GATEWAY_HEAD = "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/** Creates the proxy for requests that are not JSON-RPC, WebSockets included. It does not read them. */
export const createPassThroughHandler = ({ target, timeoutMs, onError }: PassThroughOptions): PassThrough => {
  const agent = createAgent(target);
  const proxy = loadProxy().createProxyServer({
    target,
    changeOrigin: true,
    agent,
    proxyTimeout: timeoutMs,
    xfwd: true,
  });
  return {
    web: (request, response) =>
      proxy.web(request, response, {}, (error) => {
        onError(error);
        if (response.headersSent) {
          response.destroy();
        } else {
          const headers = ["Content-Type", "text/plain", "Content-Length", String(BAD_GATEWAY.length)];
          response.writeHead(502, headers).end(BAD_GATEWAY);
        }
      }),
    upgrade: (request, socket, head) =>
      proxy.ws(request, socket, head, {}, (error) => {
        onError(error);
        if (!socket.destroyed) {
          socket.end(BAD_GATEWAY_HEAD);
        }
      }),
    close: () => {
      proxy.close();
      agent.destroy();
    },
  };
};
