import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { IN_EACH_BLOCK } from "./inEachBlock.ts";

/**
 * A process with clients that attack forebay on the port of its first argument, by the attacks of the others. Each attack has its own
 * client address. It ends with its parent.
 */
const port = Number(process.argv[2]);
const url = `http://127.0.0.1:${port}`;
const BODY_BYTES = 5_200_000;
const STALLED_BODIES = 200;
const SLOW_READERS = 40;
const SOCKETS = 10;
const ANSWERS = 63;
const LOOPS = 70;
const PIPELINED = 20_000;
const LEAVING_PER_SECOND = 9;
const BATCH_SOCKETS = 20;
const BATCH_CALLS = 1_000;
const SIMULATED_CALLS = 600;
const FILTER_CLIENTS = 10;
const FILTERS = 1_000;
const FILTER_ADDRESSES = 500;
const SUBSCRIPTIONS = 900;
const PIECE_CONNECTIONS = 20;
const PIECES_BYTES = 5_000_000;
const PIECES_A_WRITE = 10_000;
const LOG_SOCKETS = 300;
const LOG_SUBSCRIPTIONS = 5;
const RECEIPT_SOCKETS = 8;
const RECEIPT_SUBSCRIPTIONS = 800;
const PROVEN_CALLS = 150;
const PROVEN_LOG_CALLS = 20;
/** The blocks of the node that the attack with proofs reads, and those of one query. */
const PROVEN_BLOCKS = 254;
const PROVEN_RANGE = 40;
/** Before a closed connection is opened again, and between two bodies. */
const PAUSE_MS = 1_000;
const BODY_PAUSE_MS = 10;

const LOOP = "0x5b600056";
/** Code that returns 128 KiB. */
const RETURNS = "0x620200005ff3";
/** Code that reads 3,000 slots. */
const READS_SLOTS = "0x5b80545060010180610bb81160005700";
const TO = `0x${"dd".repeat(20)}`;

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
const quantity = (value: number): string => `0x${value.toString(16)}`;

const callOf = (method: string, params: readonly unknown[] = [], id = 1): object => ({
  ...{ jsonrpc: "2.0", id, method, params },
});

const headOf = (client: string, more: string): string =>
  `POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${client}\r\nContent-Type: application/json\r\n${more}\r\n\r\n`;

const requestOf = (client: string, call: object): string => {
  const body = JSON.stringify(call);
  return `${headOf(client, `Content-Length: ${body.length}`)}${body}`;
};

/** Writes to a connection, which is opened again whenever forebay closes it. */
const keepConnected = (head: string, begin: (socket: Socket) => void): void => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.once("close", () => setTimeout(() => keepConnected(head, begin), PAUSE_MS));
  socket.write(head);
  begin(socket);
};

/** Opens a WebSocket again whenever it is closed. */
const keepSocket = (client: string, onOpen: (socket: WebSocket) => void): void => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers: { "x-forwarded-for": client } });
  socket.on("error", () => undefined);
  socket.on("close", () => setTimeout(() => keepSocket(client, onOpen), PAUSE_MS));
  socket.on("open", () => onOpen(socket));
};

const post = async (client: string, body: string, more: Readonly<Record<string, string>> = {}): Promise<void> => {
  const headers = { "content-type": "application/json", "x-forwarded-for": client, ...more };
  await fetch(url, { method: "POST", headers, body })
    .then((response) => response.arrayBuffer())
    .catch(() => undefined);
};

/** Sends the bodies of a client in turn, without an end, and several at a time. */
const keepPosting = (
  client: string,
  bodies: readonly object[],
  inFlight: number,
  headers?: Readonly<Record<string, string>>,
): void => {
  const texts = bodies.map((body) => JSON.stringify(body));
  for (const first of range(inFlight)) {
    void (async () => {
      for (let turn = first; ; turn++) {
        await post(client, texts[turn % texts.length] ?? "", headers);
        await sleep(BODY_PAUSE_MS);
      }
    })();
  }
};

const stallBodies = (): void => {
  for (const _ of range(STALLED_BODIES)) {
    keepConnected(headOf("203.0.113.1", `Content-Length: ${BODY_BYTES}`), (socket) => {
      socket.resume();
      socket.write(Buffer.alloc(BODY_BYTES - 1, 0x20));
    });
  }
};

const readNothing = (): void => {
  for (const _ of range(SLOW_READERS)) {
    keepConnected(requestOf("203.0.113.2", callOf("custom_large")).repeat(8), (socket) => socket.pause());
  }
};

/** Sends messages on WebSockets that read nothing. */
const openSockets = (client: string, sockets: number, messages: readonly object[]): void => {
  const texts = messages.map((message) => JSON.stringify(message));
  for (const _ of range(sockets)) {
    keepSocket(client, (socket) => {
      socket.pause();
      for (const text of texts) {
        socket.send(text);
      }
    });
  }
};

const simulationOf = (block: object, id = 1): object =>
  callOf("eth_simulateV1", [{ blockStateCalls: [block] }, "latest"], id);

const endless = {
  ...{ stateOverrides: { [TO]: { code: LOOP } }, blockOverrides: { gasLimit: "0xfffffffffffff" } },
  calls: [{ to: TO }],
};

const pipeline = (): void => {
  const reads = range(PIPELINED).map((id) => requestOf("203.0.113.5", callOf("custom_read", [id], id)));
  keepConnected(reads.join(""), (socket) => socket.resume());
};

/** Disconnects during a simulation. */
const leave = (): void => {
  setInterval(() => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(requestOf("203.0.113.6", simulationOf(endless)));
    setTimeout(() => socket.destroy(), 50);
  }, 1_000 / LEAVING_PER_SECOND);
};

/** WebSockets with 5.9 MB of batches each. Each result is below 64 KiB, and none is read. */
const batches = (): void => {
  const batch = range(BATCH_CALLS).map((id) => callOf("custom_small", ["a".repeat(33)], id));
  openSockets("203.0.113.10", BATCH_SOCKETS, Array<object>(ANSWERS).fill(batch));
};

/** Simulations of 38 KB whose calls return 75 MiB. */
const returnData = (): void => {
  const block = {
    blockOverrides: { gasLimit: "0xffffffffffff" },
    stateOverrides: { [TO]: { code: RETURNS } },
    calls: Array(SIMULATED_CALLS).fill({ to: TO }),
  };
  keepPosting("203.0.113.11", [simulationOf(block)], 8);
};

/** Clients with as many log filters as they may have, and WebSockets with as many subscriptions. */
const filters = (): void => {
  const address = range(FILTER_ADDRESSES).map((at) => `0x${at.toString(16).padStart(40, "a")}`);
  const created = JSON.stringify(range(100).map((id) => callOf("eth_newFilter", [{ address }], id)));
  for (const client of range(FILTER_CLIENTS)) {
    void (async () => {
      for (let count = 0; count < FILTERS; count += 100) {
        await post(`203.0.112.${client}`, created);
      }
    })();
    keepSocket(`203.0.111.${client}`, (socket) => {
      for (const id of range(SUBSCRIPTIONS)) {
        socket.send(JSON.stringify(callOf("eth_subscribe", ["logs", { address }], id)));
      }
    });
  }
};

/** Batches of simulations that read 3,000 slots each. */
const stateReads = (): void => {
  const block = { stateOverrides: { [TO]: { code: READS_SLOTS } }, calls: [{ to: TO }] };
  keepPosting("203.0.113.13", [range(10).map((id) => simulationOf(block, id))], 2);
};

/** Sends pieces of one byte as fast as they are read. Each costs objects of more than 100 bytes, unless it is joined. Then it waits. */
const sendPieces = (socket: Socket, pieces: Buffer): void => {
  let sent = 0;
  const send = (): void => {
    while (sent < PIECES_BYTES && !socket.destroyed) {
      sent += PIECES_A_WRITE;
      if (!socket.write(pieces)) {
        socket.once("drain", send);
        return;
      }
    }
  };
  send();
};

/** Bodies of 5 MB in HTTP chunks of one byte. Their last byte does not arrive. */
const chunks = (): void => {
  const pieces = Buffer.from("1\r\n \r\n".repeat(PIECES_A_WRITE));
  for (const _ of range(PIECE_CONNECTIONS)) {
    keepConnected(headOf("203.0.113.20", "Transfer-Encoding: chunked"), (socket) => {
      socket.resume();
      sendPieces(socket, pieces);
    });
  }
};

/** WebSocket messages of frames of one byte, masked with zeros: a text that goes on (RFC 6455, section 5.2). */
const frames = (): void => {
  const head =
    "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.21\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  const next = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x20]);
  const pieces = Buffer.concat(Array<Buffer>(PIECES_A_WRITE).fill(next));
  for (const _ of range(PIECE_CONNECTIONS)) {
    keepConnected(head, (socket) => {
      socket.once("data", () => {
        socket.resume();
        socket.write(Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x20]));
        sendPieces(socket, pieces);
      });
    });
  }
};

/** Many subscriptions to the same large blocks. Once all have their ids, nobody reads what they send. */
const subscribe = (client: string, sockets: number, count: number, params: readonly unknown[]): void => {
  for (const _ of range(sockets)) {
    keepSocket(client, (socket) => {
      let answered = 0;
      socket.on("message", () => {
        answered++;
        if (answered === count) {
          socket.pause();
        }
      });
      for (const id of range(count)) {
        socket.send(JSON.stringify(callOf("eth_subscribe", params, id)));
      }
    });
  }
};

/** A client that requires proven answers about what is dear: whole blocks, receipts, and logs that all blooms admit and no block has. */
const proofs = (): void => {
  const word = `0x${"b2".repeat(32)}`;
  const blockAt = (index: number): string => quantity(1 + (index % PROVEN_BLOCKS));
  const bodies = [
    range(PROVEN_CALLS).map((id) => callOf("eth_getBlockReceipts", [blockAt(id)], id)),
    range(PROVEN_CALLS).map((id) => callOf("eth_getBlockByNumber", [blockAt(id), true], id)),
    range(PROVEN_LOG_CALLS).map((id) => {
      const from = 1 + id * 8;
      const blocks = { fromBlock: quantity(from), toBlock: quantity(from + PROVEN_RANGE) };
      return callOf("eth_getLogs", [{ ...blocks, topics: [word, word, word, word] }], id);
    }),
  ];
  keepPosting("203.0.113.40", bodies, 4, { "x-forebay-require": "proven" });
};

const ofTransaction = { transactionHashes: [IN_EACH_BLOCK] };
const ATTACKS: Readonly<Record<string, () => void>> = {
  ...{ stallBodies, readNothing, pipeline, leave, batches, returnData, filters, stateReads, chunks, frames, proofs },
  openSockets: () => openSockets("203.0.113.3", SOCKETS, Array(ANSWERS).fill(callOf("custom_large"))),
  simulate: () => keepPosting("203.0.113.4", [range(LOOPS).map((id) => simulationOf(endless, id))], 1),
  logs: () => subscribe("203.0.113.30", LOG_SOCKETS, LOG_SUBSCRIPTIONS, ["logs"]),
  receipts: () =>
    subscribe("203.0.113.31", RECEIPT_SOCKETS, RECEIPT_SUBSCRIPTIONS, ["transactionReceipts", ofTransaction]),
};

process.on("disconnect", () => process.exit());
for (const name of process.argv.slice(3)) {
  ATTACKS[name]?.();
}
process.send?.("started");
