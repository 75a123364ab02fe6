import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIPv4 } from "node:net";
import type { Registry } from "prom-client";
import { errorText } from "../core/errorText.ts";
import { listen } from "../core/listen.ts";
import { USAGE_DAYS } from "../core/usageStore.ts";
import type { Awaitable } from "../jsonrpc/call.ts";

/** An import of node:http would also load Node's own fetch and WebSocket: 11 MB and 30 ms of each start. */
const { createServer } = process.getBuiltinModule("node:http");

export interface OpsOptions {
  readonly host: string;
  readonly port: number;
  readonly registry: Pick<Registry, "metrics" | "contentType">;
  /** Whether requests may be sent here: for all chains, or for the named one. */
  readiness(chain: string | undefined): ReadinessReport;
  /** Sets the metrics that are computed only for a scrape. */
  measure?(): void;
  /** JSON text of the configuration in force, without its secrets. */
  config(): string;
  /** JSON text of the usage of the `top` keys that cost most; also by day, if `days` is defined. Rejects if the days cannot be read. */
  usage(top: number, days: number | undefined): Awaitable<string>;
  /** Takes nodes out of use. Undefined without `server.opsToken`: then no path needs it, and nodes cannot be cordoned. */
  readonly cordon?: CordonOptions | undefined;
  onError(error: unknown): void;
}

export interface CordonOptions {
  /** The bearer token that a request must have, also for the private paths. */
  readonly token: string;
  /** Takes a node out of use. Without `isForced`, not if no other node of the chain can be used. */
  cordon(chain: string, node: string, isForced: boolean): CordonOutcome;
  uncordon(chain: string, node: string): CordonOutcome;
}

export type CordonOutcome = "done" | "unknown" | "last";

export interface ReadinessReport {
  readonly status: 200 | 404 | 503;
  /** Plain data, sent as JSON. */
  readonly body: object;
}

export interface OpsServer {
  readonly port: number;
  close(): Promise<void>;
}

const reply = (response: ServerResponse, status: number, text: string, type = "text/plain"): void => {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(text) }).end(text);
};

const hostName = (header: string): string | undefined =>
  URL.canParse(`http://${header}`) ? new URL(`http://${header}`).hostname : undefined;

/**
 * Whether a request is for this port. A page of any site can send requests here if its name resolves to a loopback address (DNS
 * rebinding). The browser then sends that name. From another machine, any name is accepted.
 */
const isOwnHost = ({ headers, socket }: IncomingMessage, ownHost: string): boolean => {
  const local = socket.localAddress ?? "";
  const isLoopback = local === "::1" || local.replace("::ffff:", "").startsWith("127.");
  if (!isLoopback || headers.host === undefined) {
    return true;
  }
  const name = hostName(headers.host);
  return (
    name !== undefined &&
    (name === "localhost" || name === ownHost.toLowerCase() || name.startsWith("[") || isIPv4(name))
  );
};

const CORDON_PATH = /^\/nodes\/([^/]+)\/([^/]+)\/(cordon|uncordon)(\?force)?$/;

const hasToken = ({ headers }: IncomingMessage, token: string): boolean => {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  // Digests have one length, and their comparison takes the same time for each token.
  return timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${token}`));
};

/** Whether the request has the token. Else it gets 401. */
const admit = (request: IncomingMessage, response: ServerResponse, token: string): boolean => {
  const isAdmitted = hasToken(request, token);
  if (!isAdmitted) {
    response.setHeader("WWW-Authenticate", "Bearer");
    reply(response, 401, "server.opsToken is needed as a bearer token\n");
  }
  return isAdmitted;
};

/** Takes a node out of use, or back. The query `force` allows it for the last node. */
const sendCordon = (
  request: IncomingMessage,
  response: ServerResponse,
  { token, cordon, uncordon }: CordonOptions,
  [, chain = "", node = "", action = "", force]: readonly (string | undefined)[],
): void => {
  if (request.method !== "POST") {
    response.setHeader("Allow", "POST");
    reply(response, 405, "POST only\n");
    return;
  }
  if (!admit(request, response, token)) {
    return;
  }
  const cordoned = action === "cordon";
  const outcome = cordoned ? cordon(chain, node, force !== undefined) : uncordon(chain, node);
  if (outcome === "unknown") {
    reply(response, 404, "no such chain or node\n");
  } else if (outcome === "last") {
    reply(response, 409, "no other node of the chain can be used: add ?force to cordon it\n");
  } else {
    const note = "of this machine only, until a reload or a restart";
    reply(response, 200, `${JSON.stringify({ chain, node, cordoned, note })}\n`, "application/json");
  }
};

const DEFAULT_TOP = 100;

const topOf = (query: string): number => {
  const top = Number(new URLSearchParams(query).get("top") ?? DEFAULT_TOP);
  return Number.isInteger(top) && top >= 0 ? top : DEFAULT_TOP;
};

const sendMetrics = async (response: ServerResponse, { registry, measure, onError }: OpsOptions): Promise<void> => {
  try {
    measure?.();
    reply(response, 200, await registry.metrics(), registry.contentType);
  } catch (error) {
    onError(error);
    reply(response, 500, "metrics cannot be collected\n");
  }
};

const sendUsage = async (response: ServerResponse, query: string, { usage }: OpsOptions): Promise<void> => {
  const days = new URLSearchParams(query).get("days");
  if (days !== null && !(/^\d{1,2}$/.test(days) && Number(days) >= 1 && Number(days) <= USAGE_DAYS)) {
    reply(response, 400, `days must be an integer from 1 to ${USAGE_DAYS}\n`);
    return;
  }
  try {
    reply(response, 200, await usage(topOf(query), days === null ? undefined : Number(days)), "application/json");
  } catch (error) {
    const cause = errorText(error);
    reply(response, 503, `the usage of days cannot be read now (${cause}): ask again, or without days\n`);
  }
};

const sendReadiness = (response: ServerResponse, query: string, { readiness }: OpsOptions): void => {
  const { status, body } = readiness(new URLSearchParams(query).get("chain") ?? undefined);
  reply(response, status, `${JSON.stringify(body)}\n`, "application/json");
};

/** They name customers, prices and hosts of nodes. */
const PRIVATE_PATHS: ReadonlySet<string> = new Set(["/config", "/usage"]);

const servePage = (request: IncomingMessage, response: ServerResponse, options: OpsOptions): void => {
  const [path = "", query = ""] = request.url?.split("?", 2) ?? [];
  const { cordon } = options;
  if (cordon !== undefined && PRIVATE_PATHS.has(path) && !admit(request, response, cordon.token)) {
    return;
  }
  switch (path) {
    case "/metrics":
      void sendMetrics(response, options);
      break;
    case "/healthz":
      reply(response, 200, "ok\n");
      break;
    case "/readyz":
      sendReadiness(response, query, options);
      break;
    case "/usage":
      void sendUsage(response, query, options);
      break;
    case "/config":
      reply(response, 200, options.config(), "application/json");
      break;
    default:
      reply(response, 404, "not found\n");
  }
};

const serve = (request: IncomingMessage, response: ServerResponse, options: OpsOptions): void => {
  const { host, cordon } = options;
  const cordonPath = cordon && CORDON_PATH.exec(request.url ?? "");
  if (!isOwnHost(request, host)) {
    reply(response, 421, "the Host header must be an address, or localhost\n");
  } else if (cordon && cordonPath) {
    sendCordon(request, response, cordon, cordonPath);
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("Allow", "GET, HEAD");
    reply(response, 405, "GET only\n");
  } else {
    servePage(request, response, options);
  }
};

/** For the operator alone, on a port of its own: /metrics, /healthz (the event loop turns), /readyz, /usage, /config. */
export const createOpsServer = async (options: OpsOptions): Promise<OpsServer> => {
  const { host, port } = options;
  const server = createServer((request, response) => serve(request, response, options));
  await listen(server, { host, port, setting: "server.opsHost and server.opsPort, or --ops-host and --ops-port" });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
