import { createServer } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { allowEveryone } from "../../../src/access/access.ts";
import { Context } from "../../../src/core/context.ts";
import type { RpcResponse } from "../../../src/core/rpcSource.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import { createDispatch } from "../../../src/jsonrpc/dispatch.ts";
import { CODES, RpcError } from "../../../src/jsonrpc/rpcError.ts";
import { Deliveries } from "../../../src/subscriptions/deliveries.ts";
import { Subscriptions } from "../../../src/subscriptions/subscriptions.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { WebSockets } from "../../../src/websocket/webSocketServer.ts";
import { createHeads } from "../../support/builders/heads.ts";
import { createPendingBlock, createPendingSource } from "../../support/builders/pendingBlock.ts";
import { listen } from "../../support/servers/ports.ts";
import { LOGS_A_FLASHBLOCK, PERSONS, personTopic, TOKEN, TRANSFER, timeTopic } from "./subscribersShape.ts";

/** The server of the long run `subscribers`: emits flashblocks on request, and reports its memory. */
setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Starts WebSockets and subscriptions without a node. */
const startServer = async () => {
  const pending = createPendingSource();
  const heads = createHeads({ latest: 10n });
  const telemetry = createTelemetry({ level: "silent" });
  const deliveries = new Deliveries(telemetry.log);
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
    onError: console.error,
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
  return { port: await listen(server), telemetry, pending };
};

const { port, pending, telemetry } = await startServer();
/** Number of logs that were sent to each person. Each log contains its number. */
const counts = Array.from({ length: PERSONS }, () => 0);
let blocks = 0;
let next = 0;

const numberTopic = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

const emit = (): void => {
  blocks++;
  const time = timeTopic(performance.timeOrigin + performance.now());
  const transactions = Array.from({ length: LOGS_A_FLASHBLOCK }, (_, at) => {
    const person = next++ % PERSONS;
    counts[person] = (counts[person] ?? 0) + 1;
    const topics = [TRANSFER, time, personTopic(person), numberTopic(counts[person] ?? 0)];
    return { name: `${blocks}-${at}`, logs: [{ address: TOKEN, topics }] };
  });
  const block = createPendingBlock(BigInt(10 + blocks), 1, transactions);
  pending.emit({
    extended: [{ block, fromTransaction: 0, toTransaction: transactions.length, kind: "transactions" }],
  });
};

let timer: NodeJS.Timeout | undefined;
process.on("message", async (message: { readonly ask: "memory" | "start" | "stop"; readonly everyMs?: number }) => {
  if (message.ask === "start") {
    timer = setInterval(emit, message.everyMs);
  }
  if (message.ask === "stop") {
    clearInterval(timer);
    const slowClosed = (await telemetry.metrics.slowClosed.get()).values[0]?.value ?? 0;
    process.send?.({ counts, slowClosed });
  }
  if (message.ask === "memory") {
    collect();
    const { rss, heapUsed, external } = process.memoryUsage();
    process.send?.({ residentBytes: rss, usedBytes: heapUsed + external });
  }
});
process.on("disconnect", () => process.exit());
process.send?.(port);
