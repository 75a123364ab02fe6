import { EventEmitter, once } from "node:events";
import { WebSocket } from "ws";

/** The JSON value of a notification or of a response. */
export interface SocketMessage {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly params?: { readonly subscription: string; readonly result: unknown };
}

/** A bare WebSocket client for tests: calls by id, notifications by subscription. */
export interface SocketClient {
  readonly socket: WebSocket;
  readonly events: EventEmitter;
  call(method: string, ...params: readonly unknown[]): Promise<SocketMessage>;
  /** Returns the list to which the subscription's results are appended. Rejects if the subscription is rejected. */
  subscribe(...params: readonly unknown[]): Promise<unknown[]>;
  /** Resolves once the list has `length` entries. */
  atLeast(list: readonly unknown[], length: number): Promise<void>;
  /** Sends text unchanged. Resolves with the next message. */
  raw(text: string): Promise<string>;
  closed(): Promise<{ readonly code: number; readonly reason: string }>;
  close(): Promise<void>;
}

export const connectSocket = async (
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<SocketClient> => {
  const socket = new WebSocket(url.replace("http:", "ws:"), { headers });
  const events = new EventEmitter();
  events.setMaxListeners(0);
  const lists = new Map<string, unknown[]>();
  const listOf = (id: string): unknown[] => {
    const list = lists.get(id) ?? [];
    lists.set(id, list);
    return list;
  };
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  let nextId = 1;
  socket.on("message", (data) => {
    const text = String(data);
    const message: SocketMessage = JSON.parse(text);
    events.emit("raw", text);
    if (message.params !== undefined) {
      listOf(message.params.subscription).push(message.params.result);
      events.emit("notification");
    } else {
      events.emit(`answer${message.id}`, message);
    }
  });
  socket.on("close", (code, reason) => {
    closed.resolve({ code, reason: String(reason) });
    events.emit("notification");
  });
  await once(socket, "open");

  const call = async (method: string, ...params: readonly unknown[]): Promise<SocketMessage> => {
    const id = nextId++;
    const answered = once(events, `answer${id}`);
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    const [message] = await answered;
    return message;
  };
  return {
    socket,
    events,
    call,
    subscribe: async (...params) => {
      const { result, error } = await call("eth_subscribe", ...params);
      if (error !== undefined) {
        throw new Error(`${error.code}: ${error.message}`);
      }
      return listOf(String(result));
    },
    atLeast: async (list, length) => {
      while (list.length < length) {
        if (socket.readyState === WebSocket.CLOSED) {
          throw new Error("the connection was closed");
        }
        await once(events, "notification");
      }
    },
    raw: async (text) => {
      const answered = once(events, "raw");
      socket.send(text);
      const [answer] = await answered;
      return answer;
    },
    closed: () => closed.promise,
    close: async () => {
      socket.close();
      await closed.promise;
    },
  };
};
