import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { checkResponse, compareWithNode, startRequestFuzz } from "../engine/fuzzService.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

const AT_ONCE = 4;
const PROBE_EVERY = 25;
const MESSAGES = 12;
const RAW_SHARE = 0.2;
const WAIT_MS = 2_000;
const RAW_WAIT_MS = 20;

/** Creates a masked frame. Its length, opcode and flags may be wrong. */
const frameOf = (payload: Uint8Array, choices: Choices): Buffer => {
  const first = choices.chance(0.7) ? 0x81 : choices.below(256);
  const mask = randomBytes(4);
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([0x80 | 126, payload.length >> 8, payload.length & 0xff]);
  const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0));
  return Buffer.concat([Buffer.from([first]), length, mask, masked]);
};

const handshake = async (socket: Socket): Promise<void> => {
  const lines = [
    "GET / HTTP/1.1",
    "Host: localhost",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  await Promise.race([once(socket, "data"), once(socket, "close")]);
};

const sendFrames = async (url: string, frames: readonly Uint8Array[]): Promise<void> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  await handshake(socket);
  for (const frame of frames) {
    socket.write(frame);
  }
  await sleep(RAW_WAIT_MS);
  socket.destroy();
};

/** Sends messages on one connection, then a valid call that must be answered unless the connection is closed. */
const converse = async (url: string, messages: readonly Buffer[], isBinary: boolean): Promise<void> => {
  const socket = new WebSocket(url.replace("http:", "ws:"));
  const input = messages.map((message) => message.toString("latin1")).join("\n");
  const answered = Promise.withResolvers<void>();
  socket.on("error", () => undefined);
  socket.on("close", () => answered.resolve());
  socket.on("message", (data) => {
    const text = String(data);
    if (text.includes('"method":"eth_subscription"')) {
      return;
    }
    try {
      checkResponse(text, input);
    } catch (error) {
      answered.reject(error);
    }
    if (text.includes('"id":"last"')) {
      answered.resolve();
    }
  });
  await Promise.race([once(socket, "open"), answered.promise]);
  for (const message of messages) {
    socket.send(message, { binary: isBinary });
  }
  socket.send('{"jsonrpc":"2.0","id":"last","method":"eth_chainId","params":[]}');
  const timer = setTimeout(() => answered.reject(new Finding("no answer", input)), WAIT_MS);
  try {
    await answered.promise;
  } finally {
    clearTimeout(timer);
    socket.terminate();
  }
};

/** Messages and frames on WebSockets. */
export const createTarget: CreateTarget = async (t) => {
  const { fuzzed, bodyOf } = await startRequestFuzz(t, 0.15);
  const { service } = fuzzed;
  return {
    atOnce: AT_ONCE,
    run: async (choices, index) => {
      const messages = Array.from({ length: 1 + choices.below(MESSAGES) }, () => bodyOf(choices));
      if (choices.chance(RAW_SHARE)) {
        const frames = messages.map((message) => frameOf(message.subarray(0, 60_000), choices));
        const mutated = frames.map((frame) => (choices.chance(0.3) ? mutateBytes(frame, choices) : frame));
        await sendFrames(service.url, mutated);
      } else {
        await converse(service.url, messages, choices.chance(0.1));
      }
      if (index % PROBE_EVERY === 0) {
        await compareWithNode(fuzzed, { method: "eth_getBlockByNumber", params: ["0x5", false] }, "");
      }
    },
  };
};
