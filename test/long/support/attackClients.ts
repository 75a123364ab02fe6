import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { BUDGET_ATTACKS } from "./budgetAttacks.ts";
import { EVENT_ATTACKS } from "./eventAttacks.ts";
import { PIECE_ATTACKS } from "./pieceAttacks.ts";

/**
 * A process with clients that attack forebay on the port of its first argument. Each attack has its own client address.
 * It ends with its parent.
 */
const port = Number(process.argv[2]);
const BODY_BYTES = 5_200_000;
const STALLED_BODIES = 200;
const SOCKETS = 10;
const ANSWERS = 63;
const LOOPS = 70;
const PIPELINED = 20_000;
const SLOW_READERS = 40;
const LEAVING_PER_SECOND = 9;
/** Before a closed connection is opened again. */
const PAUSE_MS = 1_000;
const LOOP = "0x5b600056";

const JSON_TYPE = "Content-Type: application/json";
const request = (client: string, body: string, bytes = body.length): string =>
  `POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${client}\r\n${JSON_TYPE}\r\nContent-Length: ${bytes}\r\n\r\n${body}`;

const callOf = (method: string, params: readonly unknown[] = [], id = 1): string =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });

const open = (): Socket => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  return socket;
};

/** Opens a connection again whenever forebay closes it. */
const repeat = (start: () => Socket): void => {
  const socket = start();
  socket.once("close", () => {
    setTimeout(() => repeat(start), PAUSE_MS);
  });
};

const stallBodies = (): void => {
  for (let index = 0; index < STALLED_BODIES; index++) {
    repeat(() => {
      const socket = open();
      socket.resume();
      socket.write(request("203.0.113.1", "", BODY_BYTES));
      socket.write(Buffer.alloc(BODY_BYTES - 1, 0x20));
      return socket;
    });
  }
};

const readNothing = (): void => {
  for (let index = 0; index < SLOW_READERS; index++) {
    repeat(() => {
      const socket = open();
      socket.pause();
      socket.write(request("203.0.113.2", callOf("custom_large")).repeat(8));
      return socket;
    });
  }
};

const openSockets = (): void => {
  const start = (): void => {
    const headers = { "x-forwarded-for": "203.0.113.3" };
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers });
    socket.on("error", () => undefined);
    socket.on("close", () => setTimeout(start, PAUSE_MS));
    socket.on("open", () => {
      socket.pause();
      for (let id = 0; id < ANSWERS; id++) {
        socket.send(callOf("custom_large", [], id));
      }
    });
  };
  for (let index = 0; index < SOCKETS; index++) {
    start();
  }
};

const loop = (id: number): object => {
  const to = `0x${"dd".repeat(20)}`;
  const overrides = { stateOverrides: { [to]: { code: LOOP } }, blockOverrides: { gasLimit: "0xfffffffffffff" } };
  return JSON.parse(callOf("eth_simulateV1", [{ blockStateCalls: [{ ...overrides, calls: [{ to }] }] }, "latest"], id));
};

const simulate = async (): Promise<never> => {
  const body = JSON.stringify(Array.from({ length: LOOPS }, (_, id) => loop(id)));
  for (;;) {
    const headers = { "content-type": "application/json", "x-forwarded-for": "203.0.113.4" };
    await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body })
      .then((response) => response.text())
      .catch(() => undefined);
    await sleep(10);
  }
};

const pipeline = (): void =>
  repeat(() => {
    const socket = open();
    socket.resume();
    let text = "";
    for (let id = 0; id < PIPELINED; id++) {
      text += request("203.0.113.5", callOf("custom_read", [id], id));
    }
    socket.write(text);
    return socket;
  });

const leave = (): void => {
  setInterval(() => {
    const socket = open();
    socket.write(request("203.0.113.6", JSON.stringify(loop(1))));
    setTimeout(() => socket.destroy(), 50);
  }, 1_000 / LEAVING_PER_SECOND);
};

const ATTACKS: Readonly<Record<string, (port: number) => unknown>> = {
  ...{ stallBodies, readNothing, openSockets, pipeline, leave, simulate },
  ...BUDGET_ATTACKS,
  ...PIECE_ATTACKS,
  ...EVENT_ATTACKS,
};

/** The attacks to run, by name. Default: all. */
const names = process.argv.slice(3);
process.on("disconnect", () => process.exit());
for (const [name, attack] of Object.entries(ATTACKS)) {
  if (names.length === 0 || names.includes(name)) {
    void attack(port);
  }
}
process.send?.("started");
