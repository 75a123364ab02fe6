import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { listen } from "../../support/servers/ports.ts";

const CONNECTIONS = 256;

/** Reads the node's response and writes it to the client. */
class Forwarding implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #chunks: Buffer[] = [];

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(): void {
    // The request is never aborted.
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#response.statusCode = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks);
    this.#response
      .writeHead(this.#response.statusCode, { "Content-Type": "application/json", "Content-Length": body.length })
      .end(body);
  }

  onResponseError(): void {
    this.#response.writeHead(502).end();
  }
}

/** The floor of a proxy in Node.js: node:http reads each body, undici sends it unchanged. No parsing, no cache, no metrics. */
const startFloor = async (nodePort: number): Promise<void> => {
  const pool = new Pool(`http://127.0.0.1:${nodePort}`, { connections: CONNECTIONS, pipelining: 1 });
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      pool.dispatch(
        {
          path: "/",
          method: "POST",
          headers: { "content-type": "application/json" },
          body: Buffer.concat(chunks),
        },
        new Forwarding(response),
      );
    });
  });
  process.send?.(await listen(server));
};

await startFloor(Number(process.argv[2]));
process.on("disconnect", () => process.exit());
