import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { allowEveryone } from "../../../src/access/access.ts";
import { Context } from "../../../src/core/context.ts";
import type { RpcResponse } from "../../../src/core/rpcSource.ts";
import { createDispatch } from "../../../src/jsonrpc/dispatch.ts";
import { CODES, RpcError } from "../../../src/jsonrpc/rpcError.ts";
import { Deliveries } from "../../../src/subscriptions/deliveries.ts";
import { Subscriptions } from "../../../src/subscriptions/subscriptions.ts";
import { createTelemetry, type Telemetry } from "../../../src/telemetry/telemetry.ts";
import { WebSockets } from "../../../src/websocket/webSocketServer.ts";
import { createHeads } from "../builders/heads.ts";
import { createPendingSource } from "../builders/pendingBlock.ts";

export interface SubscriptionServer {
  readonly server: Server;
  readonly port: number;
  readonly telemetry: Telemetry;
  readonly pending: ReturnType<typeof createPendingSource>;
  /** Resolves when all events of this kind are sent. */
  sent(kind: "pendingLogs"): Promise<void>;
}

/** Creates WebSockets and subscriptions without a node, for benches and long runs. The caller publishes the pending views. */
export const createSubscriptionServer = async (): Promise<SubscriptionServer> => {
  const pending = createPendingSource();
  const heads = createHeads({ latest: 10n });
  const telemetry = createTelemetry({ level: "silent" });
  const deliveries = new Deliveries(telemetry.log);
  const failures: unknown[] = [];
  const onError = (error: unknown) => failures.push(error);
  const refuse = async (): Promise<never> => {
    throw new RpcError(CODES.METHOD_NOT_FOUND, "there is no node");
  };
  const webSockets = new WebSockets({
    maxBodyBytes: 10_000,
    maxWebSockets: 10_000,
    maxWebSocketsPerAddress: 10_000,
    webSocketBufferBytes: 1024 * 1024,
    webSocketPingMs: 30_000,
    writeTimeoutMs: 30_000,
    webSocketIdleMs: 3_600_000,
    corsOrigins: "*",
    telemetry,
  });
  const subscriptions = new Subscriptions({
    chain: "chain",
    heads: { current: () => heads, markActive: () => {}, subscribe: () => () => {} },
    pending,
    pool: { subscribe: refuse },
    read: refuse,
    limits: { maxAddresses: 1_000, maxTopics: 1_000 },
    maxSubscriptions: 1_000,
    maxBytesPerClient: 64 * 1024 * 1024,
    deliveries,
    telemetry,
  });
  const dispatch = createDispatch<Context, RpcResponse>({
    lookup: (method) =>
      method === "eth_subscribe"
        ? (call, context) => subscriptions.subscribe(call, context, refuse)
        : (call, context) => subscriptions.unsubscribe(call, context),
    forward: refuse,
    maxBatch: 100,
    maxResponseBytes: 1_000_000,
    onError,
  });
  const server = createServer();
  server.on("upgrade", (request, stream, head) =>
    webSockets.accept(
      { request, asked: {}, stream, head, admitted: allowEveryone(request), chain: "chain" },
      async (body, message) => {
        return dispatch(body, new Context(message, { heads }, 0));
      },
    ),
  );
  const sent: SubscriptionServer["sent"] = (kind) =>
    deliveries.sent(telemetry.metrics.delivered.series({ chain: "chain", kind }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as AddressInfo).port, telemetry, pending, sent };
};
