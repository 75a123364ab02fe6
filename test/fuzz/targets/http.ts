import { once } from "node:events";
import { connect } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { Agent, request } from "undici";
import { checkResponse, compareWithNode, startRequestFuzz } from "../engine/fuzzService.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import type { Choices } from "../engine/random.ts";
import type { CreateTarget } from "../engine/target.ts";

const AT_ONCE = 8;
const PROBE_EVERY = 25;
const RAW_SHARE = 0.25;
const WAIT_MS = 200;

const HEADERS: readonly string[] = [
  "Content-Type: application/json",
  "Content-Type: text/plain",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Content-Encoding: gzip",
  "Accept-Encoding: gzip, br;q=0.5, *;q=0",
  "Connection: close",
  "Connection: keep-alive, x",
  "Expect: 100-continue",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "X-Forwarded-For: 1.2.3.4, ::1, x",
  "Origin: null",
  "Cache-Control: no-cache",
];
const PATHS = [
  "/",
  "/chain",
  "/31337",
  "/chain/key",
  "//",
  "/../",
  "/%2e%2e/",
  "/status.json",
  "/?a=b",
  "*",
  "/\u00e9",
];
const VERBS = ["POST", "POST", "POST", "GET", "OPTIONS", "HEAD", "PUT", "DELETE", "CONNECT", "TRACE"];
const HTTP_WORDS = ["\r\n", "\r\n\r\n", "HTTP/1.1", "HTTP/2.0", "Content-Length: 5\r\n", "0\r\n\r\n", ...HEADERS];

/** Sends bytes on a connection of their own, and waits until it is closed or quiet. */
const sendRaw = async (url: string, bytes: Uint8Array): Promise<string> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on("error", () => undefined).on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), WAIT_MS);
  await once(socket, "close").catch(() => undefined);
  clearTimeout(timer);
  return Buffer.concat(chunks).toString("latin1");
};

const rawRequest = (body: Uint8Array, choices: Choices): Buffer => {
  const headers = Array.from({ length: choices.below(5) }, () => choices.pick(HEADERS));
  const length = choices.chance(0.8) ? body.length : choices.below(2 * body.length + 2);
  const lines = [
    `${choices.pick(VERBS)} ${choices.pick(PATHS)} HTTP/1.${choices.below(2)}`,
    "Host: localhost",
    `Content-Length: ${length}`,
    ...headers,
  ];
  const bytes = Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]);
  return choices.chance(0.5) ? mutateBytes(bytes, choices, HTTP_WORDS) : bytes;
};

/** Requests over HTTP: bodies of random calls, changed JSON, changed bytes, and raw bytes on a connection. */
export const createTarget: CreateTarget = async (t) => {
  const { fuzzed, bodyOf } = await startRequestFuzz(t, 0.2);
  const { chain, service } = fuzzed;
  const dispatcher = new Agent({ connections: AT_ONCE });
  t.after(() => dispatcher.destroy());
  return {
    atOnce: AT_ONCE,
    run: async (choices, index) => {
      const body = bodyOf(choices);
      const input = body.toString("latin1");
      if (choices.chance(RAW_SHARE)) {
        const raw = rawRequest(body, choices);
        const text = await sendRaw(service.url, raw);
        checkRaw(text, raw.toString("latin1"));
      } else {
        const encoding = choices.chance(0.1) ? choices.pick(["gzip", "br", "identity", "x"]) : undefined;
        const encoded = encoding === "gzip" ? gzipSync(body) : encoding === "br" ? brotliCompressSync(body) : body;
        const headers = {
          "content-type": "application/json",
          ...(encoding !== undefined && { "content-encoding": encoding }),
        };
        const answer = await request(service.url, { method: "POST", headers, body: encoded, dispatcher });
        const text = await answer.body.text();
        if (answer.statusCode !== 204) {
          checkResponse(text, input);
        }
      }
      if (index % PROBE_EVERY === 0) {
        const number = `0x${choices.below(chain.head.number).toString(16)}`;
        await compareWithNode(fuzzed, { method: "eth_getBlockByNumber", params: [number, true] }, input);
      }
    },
  };
};

const checkRaw = (text: string, input: string): void => {
  if (text.includes('"message":"Internal error"') || text.startsWith("HTTP/1.1 500")) {
    checkResponse('{"error":{"message":"Internal error"}}', input);
  }
};
