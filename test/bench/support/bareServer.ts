import { createServer, type ServerResponse } from "node:http";
import { listen } from "../../support/servers/ports.ts";

/** Up to this size, one string is cheapest: node:http sends it together with the headers. */
const MAX_TEXT_BYTES = 256;
/** Up to this size, one copy is cheaper than several writes. */
const MAX_JOINED_BYTES = 65_536;
const END = Buffer.from("}");
const KEEP_ALIVE_MS = 75_000;

type Answer = (response: ServerResponse, id: unknown) => void;

const headOf = (id: unknown): string => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`;
const headersOf = (bytes: number) => ({ "Content-Type": "application/json", "Content-Length": bytes });

const asText =
  (result: string): Answer =>
  (response, id) => {
    const text = `${headOf(id)}${result}}`;
    response.writeHead(200, headersOf(Buffer.byteLength(text)));
    response.end(text);
  };

const asBytes =
  (result: Buffer): Answer =>
  (response, id) => {
    const head = Buffer.from(headOf(id));
    const length = head.length + result.length + END.length;
    response.writeHead(200, headersOf(length));
    if (length < MAX_JOINED_BYTES) {
      response.end(Buffer.concat([head, result, END]));
      return;
    }
    response.write(head);
    response.write(result);
    response.end(END);
  };

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Answers every call of a batch with `result`, in one buffer. */
const answerBatch = (response: ServerResponse, result: Buffer, calls: readonly { readonly id: unknown }[]): void => {
  const parts = calls.flatMap(({ id }, index) => [index === 0 ? OPEN : COMMA, Buffer.from(headOf(id)), result, END]);
  const body = Buffer.concat([...parts, CLOSE]);
  response.writeHead(200, headersOf(body.length));
  response.end(body);
};

/** Starts a minimal JSON-RPC server on node:http: it reads, parses, and returns `result`. Returns its port. */
export const startBareServer = async (result: string): Promise<number> => {
  const bytes = Buffer.from(result);
  const answer = bytes.length <= MAX_TEXT_BYTES ? asText(result) : asBytes(bytes);
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const parsed = JSON.parse(body);
      if (Array.isArray(parsed)) {
        answerBatch(response, bytes, parsed);
      } else {
        answer(response, parsed.id);
      }
    });
  });
  // Like forebay: a connection of a slow run stays open.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return listen(server);
};
