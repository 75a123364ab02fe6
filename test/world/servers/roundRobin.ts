import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { Agent, request } from "undici";
import type { Lifespan } from "../../support/servers/redis.ts";

/** A replica behind the front. */
export interface Target {
  /** Changes with every start of the process. */
  readonly label: string;
  readonly port: number;
  readonly isUp: boolean;
}

/** The header that names the replica that answered. */
export const REPLICA_HEADER = "x-replica";
const REQUEST_TIMEOUT_MS = 30_000;

const readAll = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** Starts a load balancer. Each request, and each WebSocket, goes to the next replica that is up. */
export const startRoundRobin = async (
  t: Lifespan,
  targets: () => readonly Target[],
): Promise<{ readonly url: string }> => {
  let next = 0;
  const dispatcher = new Agent({ connections: 32, headersTimeout: REQUEST_TIMEOUT_MS });
  const sockets = new Set<Duplex>();

  const choose = (): Target | undefined => {
    const up = targets().filter(({ isUp }) => isUp);
    return up[next++ % up.length];
  };

  const forward = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const target = choose();
    if (target === undefined) {
      response.writeHead(502).end("no replica");
      return;
    }
    const { label, port } = target;
    try {
      const body = await readAll(incoming);
      const headers = { "content-type": "application/json" };
      const url = `http://127.0.0.1:${port}${incoming.url}`;
      const answer = await request(url, { method: "POST", headers, body, dispatcher });
      const text = await answer.body.text();
      const pending = answer.headers["x-forebay-pending"];
      response.writeHead(answer.statusCode, {
        "content-type": "application/json",
        [REPLICA_HEADER]: label,
        "cache-status": String(answer.headers["cache-status"] ?? ""),
        ...(pending !== undefined && { "x-forebay-pending": pending }),
      });
      response.end(text);
    } catch (error) {
      response.writeHead(502, { [REPLICA_HEADER]: label }).end(String(error));
    }
  };

  const upgrade = (incoming: IncomingMessage, client: Duplex, head: Buffer): void => {
    const target = choose();
    if (target === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect(target.port, "127.0.0.1");
    const lines = incoming.rawHeaders.reduce(
      (text, value, index) => text + (index % 2 === 0 ? `${value}: ` : `${value}\r\n`),
      `GET ${incoming.url} HTTP/1.1\r\n`,
    );
    upstream.write(`${lines}\r\n`);
    upstream.write(head);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  };

  const server = createServer((incoming, response) => void forward(incoming, response));
  server.on("upgrade", upgrade);
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(async () => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.closeAllConnections();
    await Promise.all([new Promise((resolve) => server.close(resolve)), dispatcher.destroy()]);
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
};
