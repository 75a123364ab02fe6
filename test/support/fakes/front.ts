import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { request } from "undici";
import { type WebSocket, WebSocketServer } from "ws";
import { listen } from "../servers/ports.ts";

/** A server as a node, or in front of one. */
export interface Front {
  readonly url: string;
  /** Closes all connections, like a node that restarts. */
  disconnect(): void;
  /** Closes the listener and all connections, as a process that ends. Returns the function that listens on the same port again. */
  stop(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

export interface FrontRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Resolves with true when the response is sent, or with false when the client has left before. */
  readonly ended: Promise<boolean>;
}

export interface FrontResponse {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The connection breaks before the response, or in the middle of its body. */
  readonly breaks?: "before" | "middle" | undefined;
}

/** One JSON-RPC call. */
export interface NodeCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An error that a node returns. */
export class FakeError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Returns the calls of a body: one, or those of a batch. */
export const callsOf = (body: string): readonly NodeCall[] =>
  [JSON.parse(body)].flat().map((call) => ({ ...call, params: call.params ?? [] }));

export const isBatch = (body: string): boolean => body.trimStart().startsWith("[");

/** Answers each call of a body. A FakeError that `answer` throws is the error of its call. */
export const answerBody = async (body: string, answer: (call: NodeCall) => unknown): Promise<string> => {
  const responses = await Promise.all(
    callsOf(body).map(async (call) => {
      const response = { jsonrpc: "2.0", id: call.id };
      try {
        return { ...response, result: await answer(call) };
      } catch (error) {
        const { code, message, data } = error instanceof FakeError ? error : new FakeError(-32_603, String(error));
        return { ...response, error: { code, message, data } };
      }
    }),
  );
  return JSON.stringify(isBatch(body) ? responses : responses[0]);
};

type Answer = (body: string, request: FrontRequest) => Promise<string | FrontResponse>;

const createFrontServer = (answer: Answer) =>
  createServer(async (incoming, response) => {
    const ended = new Promise<boolean>((resolve) => {
      response.on("close", () => resolve(response.writableFinished));
    });
    try {
      const { url: path = "", headers } = incoming;
      const body = Buffer.concat(await incoming.toArray()).toString();
      const answered = await answer(body, { path, headers, ended });
      const given = typeof answered === "string" ? { status: 200, text: answered } : answered;
      if (given.breaks === "before") {
        incoming.socket.destroy();
        return;
      }
      // Without a length, a client could not tell that the body is cut off.
      const length = `${Buffer.byteLength(given.text)}`;
      response.writeHead(given.status, {
        ...{ "content-type": "application/json", "content-length": length },
        ...given.headers,
      });
      if (given.breaks === "middle") {
        response.write(given.text.slice(0, given.text.length / 2), () => incoming.socket.destroy());
        return;
      }
      response.end(given.text);
    } catch {
      response.writeHead(502).end();
    }
  });

const startListening = async (server: Server): Promise<Front> => {
  const port = await listen(server);
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${port}`,
    disconnect: () => server.closeAllConnections(),
    close,
    stop: async () => {
      await close();
      return async () => {
        await once(server.listen(port, "127.0.0.1"), "listening");
      };
    },
  };
};

/** Starts a server. `answer` maps the body of a request to its response; 502 if it rejects. */
export const startFront = (answer: Answer): Promise<Front> => startListening(createFrontServer(answer));

/** A server that pushes the heads of its chain over WebSocket too. */
export interface SocketFront extends Front {
  readonly wsUrl: string;
  /** Resolves when the first subscription arrives. */
  readonly subscribed: Promise<void>;
  /** Sends the header of a block to all subscribers. */
  push(block: object): void;
  closeSockets(): void;
}

/** Starts a server whose sockets subscribe to heads by any request. `onRequest` gets their requests. */
export const startSocketFront = async (
  answer: Answer,
  onRequest: (call: NodeCall) => void = () => undefined,
): Promise<SocketFront> => {
  const server = createFrontServer(answer);
  const sockets = new WebSocketServer({ server });
  const subscribers = new Set<WebSocket>();
  const subscribed = Promise.withResolvers<void>();
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const call: NodeCall = JSON.parse(data.toString());
      onRequest(call);
      subscribers.add(socket);
      subscribed.resolve();
      // As some nodes do. A member that is null is no error.
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: call.id, result: "0x1", error: null }));
    });
    socket.on("close", () => subscribers.delete(socket));
  });
  const front = await startListening(server);
  const closeSockets = (): void => {
    for (const socket of sockets.clients) {
      socket.terminate();
    }
  };
  return {
    ...front,
    wsUrl: front.url.replace("http", "ws"),
    subscribed: subscribed.promise,
    push: (block) => {
      const { transactions, uncles, withdrawals, size, ...header }: Record<string, unknown> = { ...block };
      const params = { subscription: "0x1", result: header };
      for (const socket of subscribers) {
        socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
      }
    },
    closeSockets,
    close: () => {
      closeSockets();
      return front.close();
    },
  };
};

/** Sends a body to a node. */
export const forwardTo = async (url: string, body: string): Promise<FrontResponse> => {
  const response = await request(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return { status: response.statusCode, text: await response.body.text() };
};
